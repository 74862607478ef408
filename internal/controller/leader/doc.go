// Package leader runs some parts of the program on one replica at a time, term after term.
// It trusts the API server to keep one Lease, and the clocks of all replicas to run at nearly the same speed.
package leader
