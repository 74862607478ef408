package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"

	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// echo is a server that knows no message type. It counts what reaches it.
type echo struct {
	calls    atomic.Int64
	accepted atomic.Int64
	bytes    atomic.Int64 // that arrived on its connections
	handle   atomic.Pointer[grpc.StreamHandler]
	server   *grpc.Server
	stop     func()
}

// serveEcho answers on a pipe.
func serveEcho(t testing.TB, name string, o pipe.Options, more ...grpc.ServerOption) *echo {
	t.Helper()
	e := &echo{}
	e.server = grpc.NewServer(append(more, grpc.ForceServerCodecV2(raw.Codec{}), grpc.WaitForHandlers(true),
		grpc.UnknownServiceHandler(func(srv any, s grpc.ServerStream) error {
			e.calls.Add(1)
			if h := e.handle.Load(); h != nil {
				return (*h)(srv, s)
			}
			return kinds(srv, s)
		}))...)
	listener, err := listen(name, o)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- e.server.Serve(&counting{listener, e}) }()
	e.stop = sync.OnceFunc(func() {
		e.server.Stop()
		_ = listener.Close()
		<-ended
	})
	t.Cleanup(e.stop)
	return e
}

func (e *echo) handler(h grpc.StreamHandler) { e.handle.Store(&h) }

// kinds answers the four kinds of calls.
func kinds(_ any, s grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(s)
	switch method {
	case "/test.v1.Echo/Unary":
		m, err := receive(s)
		return errors.Join(err, s.SendMsg(&m))
	case "/test.v1.Echo/Collect": // a stream of requests, one answer
		var all raw.Message
		for {
			m, err := receive(s)
			if errors.Is(err, io.EOF) {
				return s.SendMsg(&all)
			}
			if err != nil {
				return err
			}
			all = append(all, m...)
		}
	case "/test.v1.Echo/Repeat": // one request, a stream of answers
		m, err := receive(s)
		if err != nil {
			return err
		}
		for range 5 {
			if err := s.SendMsg(&m); err != nil {
				return err
			}
		}
		return nil
	default: // both
		for {
			m, err := receive(s)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := s.SendMsg(&m); err != nil {
				return err
			}
		}
	}
}

func receive(s interface{ RecvMsg(any) error }) (raw.Message, error) {
	var m raw.Message
	err := s.RecvMsg(&m)
	return m, err
}

// counting counts connections and their bytes.
type counting struct {
	net.Listener
	echo *echo
}

func (l *counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.echo.accepted.Add(1)
		conn = &countingConn{conn, l.echo}
	}
	return conn, err
}

type countingConn struct {
	net.Conn
	echo *echo
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.echo.bytes.Add(int64(n))
	return n, err
}

var rawCalls = grpc.ForceCodecV2(raw.Codec{})

// call makes a call of any kind and returns all that comes back.
func call(ctx context.Context, c *grpc.ClientConn, method string, desc grpc.StreamDesc, sent ...raw.Message) ([]raw.Message, error) {
	s, err := c.NewStream(ctx, &desc, method, rawCalls, grpc.MaxCallRecvMsgSize(8<<20))
	if err != nil {
		return nil, err
	}
	var got []raw.Message
	for _, m := range sent {
		if err := s.SendMsg(&m); err != nil {
			break // the end of the stream says why
		}
		if desc.ClientStreams && desc.ServerStreams {
			back, err := receive(s)
			if err != nil {
				return got, err
			}
			got = append(got, bytes.Clone(back))
		}
	}
	if err := s.CloseSend(); err != nil {
		return nil, err
	}
	for {
		m, err := receive(s)
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		got = append(got, m)
		if !desc.ServerStreams {
			return got, nil
		}
	}
}

// unary is the simplest call.
func unary(ctx context.Context, c *grpc.ClientConn, method string, sent raw.Message, options ...grpc.CallOption) (raw.Message, error) {
	var got raw.Message
	err := c.Invoke(ctx, method, &sent, &got, append(options, rawCalls)...)
	return got, err
}
