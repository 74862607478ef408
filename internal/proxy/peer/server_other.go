//go:build !windows

package peer

// A socket has the same question for both of its ends; for a client's it is answered by the process that called listen.
func newServerResolver() Resolver { return NewResolver() }
