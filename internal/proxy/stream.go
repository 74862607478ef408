package proxy

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"
)

// stream is one request as the transport has announced it. It ends with exactly one terminal record, written by
// whoever claims it: the chain, or one of the hooks that see what never reaches the chain.
type stream struct {
	conn       *conn
	id         string // of its audit records
	fullMethod string // as the caller sent it
	method     string // hub operation; empty if the method is not served
	arrived    time.Time
	claimed    atomic.Bool
	ended      atomic.Bool // nothing more happens to it
}

// claim returns true to the first who asks; that one must see to it that the terminal record is written.
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
		s.conn.pipe.metrics.over(s.conn.pipe.name, kindRequest)
	}
}

type streamKey struct{}

// streamFrom returns the stream that a context belongs to; every context that the transport makes has one.
func streamFrom(ctx context.Context) *stream {
	s, _ := ctx.Value(streamKey{}).(*stream)
	return s
}

func newStream(c *conn, fullMethod string) *stream {
	return &stream{conn: c, id: rand.Text(), fullMethod: fullMethod, method: c.pipe.operation(fullMethod), arrived: time.Now()}
}
