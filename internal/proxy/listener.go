package proxy

import (
	"errors"
	"net"

	"github.com/pipeguard/pipeguard/internal/audit"
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
	if p.strangers.isAway(client{p.name, at.PID}) {
		newConn(raw, p, at).turnAway()
		return nil
	}
	c := newConn(raw, p, at)
	switch err := p.table.add(c); {
	case err == nil:
		return c
	case errors.Is(err, errCrowded):
		c.turnAway()
	default: // too late
		c.because(resultOf(errStopping), errStopping.Error())
		_ = c.Close()
	}
	return nil
}

// turnAway ends a connection right at its accept. It has no record of its own, and waits for none: the next summary counts it.
func (c *conn) turnAway() {
	_ = c.Conn.Close() // nothing was said on it
	c.because(audit.ResultRejected, errCrowded.Error())
	c.pipe.ledger.count(c.pipe.connectionRecord(c))
	c.pipe.metrics.over(c.pipe.name, kindConnection)
}
