package proxy

import (
	"net"
	"runtime"

	"google.golang.org/grpc/codes"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
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
	if p.arrivals.isAway(client{p.name, at.PID}) || !p.conns.pending.enter(at.PID) {
		p.turnAway(raw)
		return nil
	}
	p.metrics.accept(p.name)
	c := newConn(raw, p, at)
	if err := p.conns.add(c); err != nil { // too late
		c.giveUp(resultOf(err), err.Error())
		return nil
	}
	return c
}

// turnAway ends a connection right at its accept. It has no record of its own, and waits for none: the next summary counts it.
//
// It lets everything else run first afterwards. In a storm there is always another connection, so that the loops that accept, one for
// each pipe, never block; calls would wait at each of their steps until all of these have used up their time slices.
func (p *pipe) turnAway(raw net.Conn) {
	_ = raw.Close() // nothing was said on it
	p.audit.refusals.again(p.turnedAway)
	p.metrics.turnAway(p.name)
	runtime.Gosched()
}

// turnedAwayRecord is the record of every connection that is turned away from a pipe at its accept. They differ in their times alone.
func (p *pipe) turnedAwayRecord() *alike {
	e := audit.Event{
		Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, Who: audit.WhoOf(caller.Caller{Assurance: caller.AssuranceNone}),
		What:    &audit.What{Pipe: p.name, Group: p.gv.Group, Version: p.gv.Version},
		Outcome: &audit.Outcome{Result: audit.ResultRejected, Code: codes.Unavailable.String(), Error: errCrowded.Error()},
		Where:   p.where,
	}
	return &alike{refusal: refusal{isStranger: true, event: &e, kind: kindOfEvent(&e)}}
}
