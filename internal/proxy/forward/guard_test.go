package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

func TestDeniedCallsLeaveTheServerAlone(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	c := g.client()
	methods := []string{"/test.v1.Other/Unary", "/test.v1.Echo/Unary/..", "/test.v1.Echox/Unary", "/TEST.v1.Echo/Unary", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"}
	for _, method := range methods {
		if _, err := call(within(t), c, method, grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, raw.Message{1}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", method, err)
		}
	}
	g.callers.set(func(n *named) { n.identity.Process.Exe = `C:\other\x.exe` })
	if _, err := unary(within(t), g.client(), "/test.v1.Echo/Unary", nil); status.Code(err) != codes.PermissionDenied {
		t.Errorf("another program: %v", err)
	}
	for _, end := range g.log.terminals(t, len(methods)+1) {
		if end.Outcome.Result != audit.ResultDenied || end.IntentSeq != 0 {
			t.Errorf("%s: %+v", end.What.FullMethod, end.Outcome)
		}
	}
	if e.accepted.Load() != 0 || e.calls.Load() != 0 {
		t.Errorf("the server saw %d connections and %d calls", e.accepted.Load(), e.calls.Load())
	}
}

func TestNoCallBeginsWithoutItsRecord(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	e.handler(func(srv any, s grpc.ServerStream) error {
		g.log.mu.Lock()
		n := len(g.log.events)
		g.log.mu.Unlock()
		if n != 1 {
			t.Errorf("when the server is asked, the log holds %d records", n)
		}
		return kinds(srv, s)
	})
	c := g.client()
	if _, err := unary(within(t), c, "/test.v1.Echo/Unary", nil); err != nil {
		t.Fatal(err)
	}
	g.log.terminals(t, 1)
	g.log.failing(errors.New("no space left on device"))
	_, err := unary(within(t), c, "/test.v1.Echo/Unary", nil)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "audit_unavailable") {
		t.Errorf("got %v", err)
	}
	g.log.failing(nil)
	if n := e.calls.Load(); n != 1 {
		t.Errorf("the server saw %d calls", n)
	}
	e.handler(kinds)
	if _, err := unary(within(t), c, "/test.v1.Echo/Unary", nil); err != nil {
		t.Errorf("when the log is back: %v", err)
	}
}

func TestCallerThatIsReplacedDuringAStreamSaysNoMore(t *testing.T) {
	g := newGuard(t)
	serveEcho(t, g.back, g.pipes)
	s, err := g.client().NewStream(within(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.v1.Echo/Chat", rawCalls)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.SendMsg(&raw.Message{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := receive(s); err != nil {
			t.Fatal(err)
		}
	}
	g.callers.set(func(n *named) { n.dead = errors.New("the process has ended") })
	if err := s.SendMsg(&raw.Message{2}); err != nil {
		t.Fatal(err)
	}
	if m, err := receive(s); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "no longer be verified") {
		t.Errorf("got %q, %v", m, err)
	}
	if end := g.log.terminals(t, 1)[0]; end.Outcome.Code != "PermissionDenied" {
		t.Errorf("outcome %+v", end.Outcome)
	}
	if _, err := unary(within(t), g.client(), "/test.v1.Echo/Unary", nil); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a new call: %v", err)
	}
}

func TestStopEndsLongStreams(t *testing.T) {
	g := newGuard(t, func(_ *guard, o *proxy.Options) { o.Limits.StopTimeout = 100 * time.Millisecond })
	e := serveEcho(t, g.back, g.pipes)
	ended := make(chan struct{})
	e.handler(func(_ any, s grpc.ServerStream) error {
		defer close(ended)
		if err := s.SendMsg(&raw.Message{1}); err != nil {
			return err
		}
		<-s.Context().Done()
		return s.Context().Err()
	})
	s, err := g.client().NewStream(within(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.v1.Echo/Watch", rawCalls)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := receive(s); err != nil {
		t.Fatal(err)
	}
	g.stop()
	<-ended
	if _, err := receive(s); err == nil {
		t.Error("the stream goes on")
	}
	if end := g.log.terminals(t, 1)[0]; end.Outcome.Code != "Canceled" {
		t.Errorf("outcome %+v", end.Outcome)
	}
}

func TestMethodsThatCallersInventMakeNoSeries(t *testing.T) {
	g := newGuard(t)
	serveEcho(t, g.back, g.pipes)
	c := g.client()
	for i := range 50 {
		if _, err := unary(within(t), c, fmt.Sprintf("/test.v1.Echo/Invented%d", i), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := unary(within(t), c, fmt.Sprintf("/test.v1.Denied/Invented%d", i), nil); err == nil {
			t.Fatal("allowed")
		}
	}
	if _, err := unary(within(t), c, "/test.v1.Echo/Unary", nil); err != nil {
		t.Fatal(err)
	}
	g.stop()
	families, err := g.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "grpc_method" {
					methods[l.GetValue()] = true
				}
			}
		}
	}
	if diff := cmp.Diff(map[string]bool{"forwarded": true, "Unary": true}, methods); diff != "" {
		t.Error(diff)
	}
}

// silent is a caller's stream on which nothing is said, before and after its context has ended.
type silent struct {
	grpc.ServerStream
	ctx     context.Context
	release chan struct{}
}

func (s silent) Context() context.Context     { return s.ctx }
func (s silent) SendHeader(metadata.MD) error { return nil }
func (s silent) SetTrailer(metadata.MD)       {}
func (s silent) RecvMsg(any) error            { <-s.release; return io.EOF }
func (s silent) SendMsg(any) error            { return nil }

// The guard ends a call whose caller says nothing and hears nothing. Serve returns why, without waiting for the caller.
func TestASilentStreamThatIsEndedHereEndsAtTheServerToo(t *testing.T) {
	prefix, o := pipes(t)
	e := serveEcho(t, prefix+"back", o)
	began, left := make(chan struct{}), make(chan struct{})
	e.handler(func(_ any, s grpc.ServerStream) error {
		close(began)
		<-s.Context().Done()
		close(left)
		return s.Context().Err()
	})
	l := link(t, Target{Pipe: prefix + "back"}, Options{SocketDir: o.SocketDir, Servers: server()})
	ctx, end := context.WithCancelCause(within(t))
	s := silent{ctx: ctx, release: make(chan struct{})}
	t.Cleanup(func() { close(s.release) })
	ended := make(chan error, 1)
	go func() { ended <- l.Serve(ctx, "/test.v1.Echo/Chat", s) }()
	<-began
	want := status.Error(codes.PermissionDenied, "taken back")
	end(want)
	if err := <-ended; !errors.Is(err, want) {
		t.Errorf("Serve returns %v", err)
	}
	<-left
}
