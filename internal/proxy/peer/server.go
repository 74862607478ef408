package peer

import (
	"errors"
	"fmt"
	"net"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// NewServerResolver names the process that serves a pipe which this process has opened, in the same order as callers are
// named. Its errors say "the caller" of the process at the other end, whichever that is.
//
// A pipe belongs to the process that made it. One that hands its end to another process and ends is not noticed if its
// number is given, before the question, to the program that is hoped for.
func NewServerResolver() Resolver { return newServerResolver() }

// CheckServer identifies the process that serves a pipe which this process has opened, and holds it until the connection that it
// returns is closed. If that fails, or check refuses the process, conn is closed.
func CheckServer(r Resolver, conn net.Conn, check func(caller.Caller) error) (net.Conn, error) {
	held, err := r.Resolve(conn, Dialled())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("find out which process serves it: %w", err), conn.Close())
	}
	if err := check(held.Identity()); err != nil {
		return nil, errors.Join(err, held.Close(), conn.Close())
	}
	return &heldConn{Conn: conn, held: held}, nil
}

// heldConn holds the server's process.
type heldConn struct {
	net.Conn
	held Peer
}

// Close implements net.Conn.
func (c *heldConn) Close() error { return errors.Join(c.Conn.Close(), c.held.Close()) }
