// Package pipe listens where callers expect a named pipe.
// It trusts the kernel to enforce the security descriptor that it asks for.
package pipe
