package pipe

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// verifyWithin bounds how long a new pipe may take to answer its own process.
const verifyWithin = 10 * time.Second

// guarded is a listener that opens itself as a client would, as soon as it accepts, and fails
// if another process is at the other end. It asks again when it is told to.
type guarded struct {
	net.Listener
	verify func(context.Context) error
	// isSelf says whether this process is the client of a connection. Such connections are dropped
	// while the question is being asked, since they are the question.
	isSelf func(net.Conn) bool

	start     sync.Once
	asking    atomic.Int32    // questions under way
	ctx       context.Context // ends the first question when the listener is closed
	cancel    context.CancelFunc
	closed    atomic.Bool
	questions sync.WaitGroup
	fault     atomic.Pointer[error]
}

func guard(l net.Listener, verify func(context.Context) error, isSelf func(net.Conn) bool) *guarded {
	g := &guarded{Listener: l, verify: verify, isSelf: isSelf}
	g.ctx, g.cancel = context.WithTimeout(context.Background(), verifyWithin)
	g.asking.Store(1)
	return g
}

// Accept returns the next connection, or why the pipe cannot be trusted.
func (g *guarded) Accept() (net.Conn, error) {
	g.start.Do(func() { g.questions.Go(g.ask) })
	for {
		conn, err := g.Listener.Accept()
		if fault := g.fault.Load(); fault != nil {
			if err == nil {
				_ = conn.Close() // it will not be served
			}
			return nil, *fault
		}
		if err != nil {
			return nil, err
		}
		if g.asking.Load() > 0 && g.isSelf(conn) {
			_ = conn.Close() // it carried nothing
			continue
		}
		return conn, nil
	}
}

func (g *guarded) ask() {
	err := g.verify(g.ctx)
	g.asking.Add(-1)
	if err != nil && !errors.Is(g.ctx.Err(), context.Canceled) {
		g.fault.Store(&err)
		_ = g.Listener.Close() // ends the Accept that is waiting
	}
}

// Verify implements Listener. What it finds while the listener is being closed says nothing: the name is free then.
func (g *guarded) Verify(ctx context.Context) error {
	g.asking.Add(1)
	defer g.asking.Add(-1)
	err := g.verify(ctx)
	if g.closed.Load() {
		return net.ErrClosed
	}
	return err
}

// Close closes the listener and waits for the first question to end.
func (g *guarded) Close() error {
	g.start.Do(func() {}) // nothing is asked from here on
	g.closed.Store(true)
	g.cancel()
	err := g.Listener.Close()
	g.questions.Wait()
	return err
}
