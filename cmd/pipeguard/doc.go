// Command pipeguard judges Kubernetes objects and pipe paths, checks and tests policies, calls a running proxy
// and reads its audit records, at a desk and without a cluster.
// It trusts none of the files that it reads and prints their text so that it cannot act on a terminal.
package main
