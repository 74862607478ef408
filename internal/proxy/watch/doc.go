// Package watch looks whether the names of pipes still lead to this process, and who else serves pipes of such names.
// It trusts the kernel to say which process is at the other end of a pipe.
package watch
