// Command pipeguard judges Kubernetes objects and pipe paths, checks and tests policies, calls a running proxy
// and reads its audit records. It works offline, without a cluster.
// It trusts no file that it reads, and escapes text from files that would act on a terminal.
package main
