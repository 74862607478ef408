package proxy

import (
	"net"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// listener counts what it accepts and keeps to the bounds.
type listener struct {
	net.Listener
	pipe *pipe
}

// Accept returns the next connection that the bounds leave room for. It waits for the record of one that gives way or is
// refused, so that a flood is accepted no faster than it can be recorded.
func (l *listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		raw, at := peer.Arrived(accepted)
		l.pipe.metrics.accept(l.pipe.name)
		c := newConn(raw, l.pipe, at, l.pipe.table.next())
		victim, err := l.pipe.table.add(c)
		if victim != nil {
			victim.end(audit.ResultIdle, "gave way to a newer connection: nothing had been sent, and the pipe was full")
		}
		if err != nil {
			c.end(resultOf(err), err.Error())
			continue
		}
		return c, nil
	}
}
