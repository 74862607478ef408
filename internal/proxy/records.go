package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// record returns what all records of a connection have in common.
func (p *pipe) record(c *conn, kind audit.Type, stage audit.Stage, id string) audit.Event {
	return audit.Event{
		Type: kind, Stage: stage, Time: time.Now(), ID: id,
		Who:   c.who(),
		What:  &audit.What{Pipe: p.name, Group: p.gv.Group, Version: p.gv.Version},
		Corr:  c.corr,
		Where: p.where,
	}
}

// who is how records name the caller. They share it, and it is never changed.
func (c *conn) who() *audit.Who {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.named == nil {
		if c.peer == nil {
			return audit.WhoOf(caller.Caller{Assurance: caller.AssuranceNone})
		}
		c.named = audit.WhoOf(c.peer.Identity())
	}
	return c.named
}

// describe adds the method and the parameters of a decoded call, and returns its targets.
func describe(e *audit.Event, call *apiserver.Call) []apiserver.Target {
	e.What.Method, e.What.FullMethod, e.What.Verb = call.Operation.Name, call.FullMethod, "write"
	if call.Operation.ReadOnly {
		e.What.Verb = "read"
	}
	if call.Request == nil { // it is passed on unread
		return nil
	}
	e.What.Params, e.What.Redacted = apiserver.Params(call)
	targets := apiserver.Targets(call)
	for _, t := range targets {
		e.What.Targets = append(e.What.Targets, audit.Target{Kind: t.Kind, Value: t.Value})
	}
	return targets
}

// connectionRecord is the one record of a connection.
func (p *pipe) connectionRecord(c *conn) lastRecord {
	e := p.record(c, audit.TypeConnection, audit.StageConnectionClosed, c.id)
	result, reason := c.outcome()
	code := codes.OK
	if result == audit.ResultRejected {
		code = codes.Unavailable
	}
	e.Outcome = &audit.Outcome{Result: result, Code: code.String(), Error: reason, LatencyUS: since(c.at.Time)}
	return lastRecord{e, c}
}

// since is the time since an accept in microseconds. That was read from another clock than time.Now is on Windows, which may be a few
// milliseconds behind.
func since(accept time.Time) int64 { return max(0, time.Since(accept).Microseconds()) }

// rejection is the terminal record of a request that did not reach the gate.
func (p *pipe) rejection(s *stream, err error) lastRecord {
	e := p.record(s.conn, audit.TypeRequest, audit.StageResponseComplete, s.id)
	e.What.FullMethod, e.What.Method = s.fullMethod, s.method
	e.Outcome = outcome(audit.ResultRejected, err, s.arrived)
	return lastRecord{e, s.conn}
}

// refuseUnnamed records n requests that gRPC has refused without naming them.
func (p *pipe) refuseUnnamed(c *conn, n int) {
	for range n {
		p.metrics.opened(p.name, kindRequest)
		p.metrics.arrived(p.name)
	}
	p.metrics.refused.WithLabelValues(p.name).Add(float64(n))
	p.final(p.transportRefusal(c, n))
	for range n {
		p.metrics.over(p.name, kindRequest)
	}
}

// transportRefusal is the record of n requests that gRPC has refused without naming them.
func (p *pipe) transportRefusal(c *conn, n int) lastRecord {
	e := p.record(c, audit.TypeRequest, audit.StageResponseComplete, rand.Text())
	e.Outcome = &audit.Outcome{
		Result: audit.ResultRejected, Code: codes.InvalidArgument.String(),
		Error: fmt.Sprintf("requests that are not gRPC, have malformed, incomplete or too long headers, or are more than %d at once", maxStreams),
	}
	if n > 1 {
		e.Outcome.Count = uint64(n) // #nosec G115 -- positive
	}
	return lastRecord{e, c}
}

func outcome(result string, err error, arrived time.Time) *audit.Outcome {
	st := statusOf(err)
	return &audit.Outcome{Result: result, Code: st.Code().String(), Error: st.Message(), LatencyUS: time.Since(arrived).Microseconds()}
}

// statusOf is how gRPC will report err.
func statusOf(err error) *status.Status {
	if st, ok := status.FromError(err); ok {
		return st
	}
	return status.FromContextError(err)
}

// final writes a record that no call waits for. The writer of records deals with failures. A stranger that has used up its budget loses its connection.
// isSingle says that it was not counted in a summary instead, so that diagnostics may have a line about it.
func (p *pipe) final(e lastRecord) (isSingle bool) {
	err := p.audit.final(context.Background(), e)
	c, isCounted := errors.AsType[*counted](err)
	if isCounted && c.isSpent && e.conn != nil && e.Type == audit.TypeRequest {
		e.conn.expel()
	}
	return !isCounted
}
