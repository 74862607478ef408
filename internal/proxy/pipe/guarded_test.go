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
	dropped      chan struct{} // closed with the connection; may be nil
}

func (c *client) Close() error {
	c.closed = true
	if c.dropped != nil {
		close(c.dropped)
	}
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

func TestALaterQuestionIsDroppedAndNothingElse(t *testing.T) {
	q := newQueue()
	question, stranger := &client{self: true, dropped: make(chan struct{})}, &client{}
	first := true
	g := guard(q, func(context.Context) error {
		if first {
			first = false
			return nil
		}
		select {
		case q.conns <- question:
			<-question.dropped // as the real one waits for its connection's end
		case <-q.closed:
		}
		return nil
	}, isSelfClient)
	accepted := make(chan net.Conn)
	go func() {
		for {
			conn, err := g.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	q.conns <- stranger
	if conn := <-accepted; conn != net.Conn(stranger) {
		t.Fatalf("got %v", conn)
	}
	g.questions.Wait()
	if err := g.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	late := &client{}
	q.conns <- late
	if conn := <-accepted; conn != net.Conn(late) || !question.closed {
		t.Errorf("got %v, question closed %t", conn, question.closed)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	<-accepted
	if err := g.Verify(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("of a closed listener: %v", err)
	}
}

func TestALaterQuestionSaysWhoHasTheName(t *testing.T) {
	found := []error{nil, ErrTaken, ErrLost, errors.New("no answer")}
	g := guard(newQueue(), func(context.Context) error {
		err := found[0]
		found = found[1:]
		return err
	}, isSelfClient)
	g.ask()
	for _, want := range found {
		if err := g.Verify(t.Context()); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	if g.fault.Load() != nil {
		t.Error("a later question ended the pipe")
	}
	if n := g.asking.Load(); n != 0 {
		t.Errorf("%d questions are under way", n)
	}
}
