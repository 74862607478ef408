package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
)

// queue is a listener whose connections a test hands in.
type queue struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newQueue() *queue { return &queue{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (q *queue) Accept() (net.Conn, error) {
	select {
	case conn := <-q.conns:
		return conn, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *queue) Close() error {
	select {
	case <-q.closed:
	default:
		close(q.closed)
	}
	return nil
}

func (q *queue) Addr() net.Addr { return &net.UnixAddr{} }

// client is a connection that knows whether it was closed.
type client struct {
	net.Conn
	self, closed bool
}

func (c *client) Close() error {
	c.closed = true
	return nil
}

func isSelfClient(conn net.Conn) bool {
	c, ok := conn.(*client)
	return ok && c.self
}

func TestGuardedEndsWhenAnotherProcessAnswers(t *testing.T) {
	taken := fmt.Errorf("process 17: %w", ErrTaken)
	g := guard(newQueue(), func(context.Context) error { return taken }, isSelfClient)
	for range 2 { // and stays ended
		if conn, err := g.Accept(); !errors.Is(err, ErrTaken) {
			t.Errorf("got %v, %v", conn, err)
		}
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestGuardedDropsItsOwnQuestionAndNothingElse(t *testing.T) {
	q := newQueue()
	answered := make(chan struct{})
	question, stranger := &client{self: true}, &client{}
	g := guard(q, func(context.Context) error {
		q.conns <- question
		q.conns <- stranger
		<-answered
		return nil
	}, isSelfClient)
	conn, err := g.Accept()
	if err != nil || conn != net.Conn(stranger) {
		t.Fatalf("got %v, %v", conn, err)
	}
	if !question.closed || stranger.closed {
		t.Errorf("question closed %t, stranger closed %t", question.closed, stranger.closed)
	}
	close(answered)
	g.questions.Wait()

	own := &client{self: true} // no question is being asked any more
	go func() { q.conns <- own }()
	if conn, err := g.Accept(); err != nil || conn != net.Conn(own) || own.closed {
		t.Errorf("got %v, %v, closed %t", conn, err, own.closed)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

func TestGuardedLeavesNobodyWithAnUntrustedPipe(t *testing.T) {
	q := newQueue()
	g := guard(q, func(context.Context) error { return ErrTaken }, isSelfClient)
	g.start.Do(func() { g.questions.Go(g.ask) })
	g.questions.Wait()
	late := &client{}
	g.Listener = &late1{q, late}
	if conn, err := g.Accept(); !errors.Is(err, ErrTaken) {
		t.Errorf("got %v, %v", conn, err)
	}
	if !late.closed {
		t.Error("a caller is left waiting")
	}
}

// late1 still has a connection after it was closed.
type late1 struct {
	*queue
	conn net.Conn
}

func (l *late1) Accept() (net.Conn, error) { return l.conn, nil }

func TestClosingEndsTheQuestion(t *testing.T) {
	asked := make(chan struct{})
	g := guard(newQueue(), func(ctx context.Context) error {
		close(asked)
		<-ctx.Done()
		return ctx.Err()
	}, isSelfClient)
	accepted := make(chan error)
	go func() {
		_, err := g.Accept()
		accepted <- err
	}()
	<-asked
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if err := <-accepted; !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestAClosedListenerAsksNothing(t *testing.T) {
	g := guard(newQueue(), func(context.Context) error {
		t.Error("it asked")
		return nil
	}, isSelfClient)
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if conn, err := g.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, %v", conn, err)
	}
}
