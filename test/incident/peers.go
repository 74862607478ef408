package main

import (
	"fmt"
	"net"

	"github.com/pipeguard/pipeguard/internal/core/caller"
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
	return process(v), nil
}

// process is one that runs as long as its connection.
type process visit

func (p process) Identity() caller.Caller { return p.who }
func (process) Alive() error              { return nil }
func (process) Close() error              { return nil }
