package proxy

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// stream is one request as the transport has announced it. It ends with exactly one terminal record, written by
// the first to claim it: the gate, or one of the hooks that see requests that never reach the gate.
type stream struct {
	conn       *conn
	id         string // of its audit records
	fullMethod string // as the caller sent it
	method     string // hub operation; empty if the method is not served
	arrived    time.Time
	claimed    atomic.Bool
	ended      atomic.Bool  // nothing more happens to it
	fate       atomic.Int32 // of its message
	cut        context.CancelCauseFunc
	late       *time.Timer // cuts it off unless it is whole
	release    func()      // gives back its share

	owed   int  // messages of its answer that gRPC still holds; guarded by conn.mu
	isOver bool // gRPC is done with it, but for those; guarded by conn.mu
}

// Fates of a request's message.
const (
	fatePending = iota
	fateWhole
	fateCut
)

// await makes sure that the request is whole in time or ends.
func (s *stream) await(ctx context.Context) context.Context {
	ctx, s.cut = context.WithCancelCause(ctx)
	s.late = time.AfterFunc(wholeWithin, func() { s.cutOff(errLate) })
	return ctx
}

// cutOff ends a request that is not whole, and no other.
func (s *stream) cutOff(why error) {
	if s.fate.CompareAndSwap(fatePending, fateCut) && s.cut != nil { // one that was refused at its headers waits for nothing
		s.cut(why)
	}
}

// whole says that the request has arrived. It returns false if that was too late.
func (s *stream) whole() bool {
	if !s.fate.CompareAndSwap(fatePending, fateWhole) {
		return false
	}
	if s.late != nil {
		s.late.Stop()
	}
	return true
}

// whyCut is why a request was cut off, or else err.
func whyCut(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause == errLate || cause == errUnfinished { //nolint:errorlint // both are values of our own
		return cause
	}
	return err
}

// claim returns true to its first caller, which must then write the terminal record.
func (s *stream) claim() bool {
	if !s.claimed.CompareAndSwap(false, true) {
		return false
	}
	s.conn.forget(s)
	return true
}

// over is called when gRPC is done with the request, or will never have to do with it. Its record was handed over before.
func (s *stream) over() {
	if s.ended.CompareAndSwap(false, true) {
		s.conn.busy.Add(-1)
		if s.late != nil {
			s.late.Stop()
			s.cut(nil)
		}
		s.conn.answered(s)
		s.conn.pipe.metrics.over(s.conn.pipe.name, kindRequest)
	}
}

// lent is a message of its answer for gRPC, accounted for until the client has taken it.
func (s *stream) lent(message any) *raw.Lent {
	return &raw.Lent{Message: message, Lend: func() func() {
		s.conn.mu.Lock()
		defer s.conn.mu.Unlock()
		s.owed++
		return func() { s.conn.taken(s) }
	}}
}

type streamKey struct{}

// streamFrom returns the stream that a context belongs to; every context that the transport makes has one.
func streamFrom(ctx context.Context) *stream {
	s, _ := ctx.Value(streamKey{}).(*stream)
	return s
}

func newStream(c *conn, fullMethod string) *stream {
	return &stream{conn: c, id: rand.Text(), fullMethod: fullMethod, method: c.pipe.methods[fullMethod], arrived: time.Now()}
}
