// Package watch checks that the names of pipes still lead to this process, and finds other processes that serve pipes with such names.
// It trusts the kernel to say which process is at the other end of a pipe.
package watch
