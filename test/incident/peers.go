package main

import (
	"fmt"
	"net"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// names is the resolver of the story: it reads who a connection's caller is from the connection.
type names struct{}

// Resolve implements peer.Resolver.
func (names) Resolve(c net.Conn, _ peer.Arrival) (peer.Peer, error) {
	v, ok := c.(visit)
	if !ok {
		return nil, fmt.Errorf("nobody is known behind a connection of type %T", c)
	}
	return caller(v), nil
}

// caller is a process that runs as long as its connection.
type caller visit

func (c caller) Identity() peer.Identity { return c.who }
func (caller) Alive() error              { return nil }
func (caller) Close() error              { return nil }
