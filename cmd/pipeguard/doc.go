// Command pipeguard judges Kubernetes objects and pipe paths, checks and tests policies, calls a running proxy
// and reads its audit records. It works offline, but for the commands that ask about a cluster. Called as kubectl-pipeguard, it is a plugin of kubectl.
// It trusts no file that it reads, and escapes text from files that would act on a terminal.
package main
