package proxy

import (
	"net"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// listener counts what it accepts and hands it on. It waits for nothing: neither for a record nor for a caller to be named. Clients
// of a socket stand in one line of the kernel's until they are accepted, and a driver must not wait in it behind a flood.
type listener struct {
	net.Listener
	pipe *pipe
}

// Accept returns the next connection that there is room for.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.pipe.take(peer.Arrived(accepted)); c != nil {
			return c, nil
		}
	}
}

// take returns nil for a connection that is not served.
func (p *pipe) take(raw net.Conn, at peer.Arrival) *conn {
	p.metrics.accept(p.name)
	if p.strangers.isAway(at.PID) {
		p.turnAway(raw, at)
		return nil
	}
	c := newConn(raw, p, at)
	switch p.table.add(c) {
	case nil:
		return c
	case errCrowded:
		p.turnAway(raw, at)
	default: // too late
		c.because(resultOf(errStopping), errStopping.Error())
		_ = c.Close()
	}
	return nil
}
