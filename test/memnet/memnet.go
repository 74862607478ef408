// Package memnet has connections in memory, for tests in which a real network would be slow or would hide from invented time.
//
// It stands in for gRPC's bufconn, which starts four timers that fire at once for each connection: several goroutines of one
// bubble of testing/synctest that dial side by side then crash the race detector of Go 1.26. Here only a deadline in the future
// has a timer.
package memnet

import (
	"context"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// buffered is what one direction of a connection holds before a write waits, in bytes.
const buffered = 64 << 10

// Listener accepts what DialContext makes.
type Listener struct {
	arrivals chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// Listen returns an open listener.
func Listen() *Listener {
	return &Listener{arrivals: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for a connection. Its error after Close is net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.closed:
		return nil, net.ErrClosed
	case c := <-l.arrivals:
		return c, nil
	}
}

// Close ends Accept and DialContext; connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that names nothing.
func (l *Listener) Addr() net.Addr { return address{} }

// DialContext returns the client's end of a connection once Accept has returned the other. Its errors are the context's, and
// net.ErrClosed.
func (l *Listener) DialContext(ctx context.Context) (net.Conn, error) {
	there, back := newStream(), newStream()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-l.closed:
		return nil, net.ErrClosed
	case l.arrivals <- &conn{in: there, out: back}:
		return &conn{in: back, out: there}, nil
	}
}

// conn is one end. Its methods may be called side by side, as those of every net.Conn.
type conn struct{ in, out *stream }

func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }
func (c *conn) LocalAddr() net.Addr         { return address{} }
func (c *conn) RemoteAddr() net.Addr        { return address{} }

// Close lets the other end read what was written, and then io.EOF.
func (c *conn) Close() error {
	c.in.end(&c.in.abandoned)
	c.out.end(&c.out.finished)
	return nil
}

func (c *conn) SetDeadline(t time.Time) error {
	c.in.deadline(&c.in.reader, t)
	c.out.deadline(&c.out.writer, t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.deadline(&c.in.reader, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.deadline(&c.out.writer, t)
	return nil
}

// stream is one direction.
type stream struct {
	mu        sync.Mutex
	changed   sync.Cond
	held      []byte
	finished  bool // by its writer: nothing more comes
	abandoned bool // by its reader: nothing more is read
	reader    side
	writer    side
}

// side is what a reader or a writer has set: timer is nil without a deadline in the future.
type side struct {
	late  bool
	timer *time.Timer
}

func newStream() *stream {
	s := &stream{}
	s.changed.L = &s.mu
	return s
}

func (s *stream) read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.abandoned:
			return 0, io.ErrClosedPipe
		case s.reader.late:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(s.held) > 0:
			n := copy(b, s.held)
			s.held = s.held[:copy(s.held, s.held[n:])]
			s.changed.Broadcast()
			return n, nil
		case s.finished:
			return 0, io.EOF
		}
		s.changed.Wait()
	}
}

func (s *stream) write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for done := 0; ; {
		switch {
		case s.abandoned || s.finished:
			return done, io.ErrClosedPipe
		case s.writer.late:
			return done, os.ErrDeadlineExceeded
		case done == len(b):
			return done, nil
		case len(s.held) < buffered:
			n := min(len(b)-done, buffered-len(s.held))
			s.held = append(s.held, b[done:done+n]...)
			done += n
			s.changed.Broadcast()
			continue
		}
		s.changed.Wait()
	}
}

// end sets one of the stream's two ends, and wakes all that waits.
func (s *stream) end(which *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*which = true
	s.changed.Broadcast()
}

// deadline replaces one side's deadline; the zero time is none.
func (s *stream) deadline(d *side, t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	left := time.Until(t)
	d.late = !t.IsZero() && left <= 0
	if !t.IsZero() && left > 0 {
		var timer *time.Timer
		timer = time.AfterFunc(left, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if d.timer == timer { // no later one has taken its place
				d.late = true
				s.changed.Broadcast()
			}
		})
		d.timer = timer
	}
	s.changed.Broadcast()
}

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory" }
