package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// The caller has opened a stream, given the connection away and ended. Whoever has it hears no more on it, as they could ask
// for no more.
func TestAStreamOfACallerThatHasEndedSaysNothingMore(t *testing.T) {
	next := make(chan struct{})
	f := start(t, "unix", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
		var m raw.Message
		if err := s.RecvMsg(&m); err != nil {
			return err
		}
		for _, said := range []raw.Message{{1}, {2}} {
			if err := s.SendMsg(&said); err != nil {
				return err
			}
			<-next
		}
		return nil
	}))
	c := f.client(t, "filesystem-v1")
	s, err := c.NewStream(within(t), &grpc.StreamDesc{ServerStreams: true}, "/v1.Filesystem/New", grpc.ForceCodecV2(raw.Codec{}))
	if err != nil {
		t.Fatal(err)
	}
	var got raw.Message
	if err := errors.Join(s.SendMsg(&raw.Message{0}), s.CloseSend(), s.RecvMsg(&got)); err != nil || string(got) != "\x01" {
		t.Fatalf("while the caller lives: %q, %v", got, err)
	}
	f.peers.set(func(p *fakePeers) { p.dead = errors.New("it has exited") })
	close(next)
	if err := s.RecvMsg(&got); status.Code(err) != codes.PermissionDenied {
		t.Errorf("after its end: %q, %v", got, err)
	}
	if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Code != codes.PermissionDenied.String() {
		t.Errorf("recorded as %+v", e.Outcome)
	}
}

// A stream is open, and its caller may send. What allowed it ends; the stream goes on until then, and no further.
func TestAStreamEndsWithWhatAllowedIt(t *testing.T) {
	var verdict atomic.Bool
	turns := judgeFunc(func() requestpolicy.Decision {
		if verdict.Load() {
			return yes()
		}
		return no()
	})
	panics := judgeFunc(func() requestpolicy.Decision {
		if verdict.Load() {
			return yes()
		}
		panic("in the decision")
	})
	for name, c := range map[string]struct {
		judge RequestPolicy
		after func(*testing.T) *Rules // nil: the same rules answer otherwise
		code  codes.Code
	}{
		"the access list names somebody else":                     {yes, func(t *testing.T) *Rules { return listed(t, acl.Spec{}, nil) }, codes.PermissionDenied},
		"there are no rules any more, as when a bundle has ended": {yes, func(*testing.T) *Rules { return nil }, codes.PermissionDenied},
		"the request policy refuses":                              {yes, func(t *testing.T) *Rules { return listed(t, forwardSpec, no) }, codes.PermissionDenied},
		"the same rules refuse, later":                            {turns, nil, codes.PermissionDenied},
		"what decides later panics":                               {panics, nil, codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				verdict.Store(true)
				var now atomic.Pointer[Rules]
				now.Store(listed(t, forwardSpec, c.judge))
				var passed atomic.Int64
				f := start(t, "memory", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
					for {
						var m raw.Message
						if err := s.RecvMsg(&m); err != nil {
							return err
						}
						passed.Add(1)
						if err := s.SendMsg(&m); err != nil {
							return err
						}
					}
				}), func(o *Options) { o.Rules = func(string, string) *Rules { return now.Load() } })
				conn := f.client(t, "filesystem-v1")
				s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/v1.Filesystem/New", grpc.ForceCodecV2(raw.Codec{}))
				if err != nil {
					t.Fatal(err)
				}
				say := func() error {
					var got raw.Message
					if err := s.SendMsg(&raw.Message{1}); err != nil {
						return err
					}
					return s.RecvMsg(&got)
				}
				for range 3 {
					if err := say(); err != nil {
						t.Fatalf("while it is allowed: %v", err)
					}
					time.Sleep(decideEvery) // and is decided again
				}
				verdict.Store(false)
				if c.after != nil {
					now.Store(c.after(t))
				} else {
					time.Sleep(decideEvery)
				}
				if err := say(); status.Code(err) != c.code {
					t.Errorf("afterwards: %v", err)
				}
				if passed.Load() != 3 {
					t.Errorf("%d messages were passed on", passed.Load())
				}
				if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Code != c.code.String() || e.Outcome.Result != audit.ResultError || e.IntentSeq == 0 {
					t.Errorf("recorded as %+v", e.Outcome)
				}
				_ = conn.Close()
				if err := f.stop(); err != nil { // within the bubble
					t.Error(err)
				}
			})
		})
	}
}

// A stream on which nothing is said takes one of few places. It ends with what allowed it, too.
func TestASilentStreamEndsWithWhatAllowedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Pointer[Rules]
		now.Store(listed(t, forwardSpec, nil))
		f := start(t, "memory", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
			<-s.Context().Done()
			return context.Cause(s.Context())
		}), func(o *Options) { o.Rules = func(string, string) *Rules { return now.Load() } })
		conn := f.client(t, "filesystem-v1")
		s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/v1.Filesystem/New", grpc.ForceCodecV2(raw.Codec{}))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(&raw.Message{1}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * decideEvery)
		if n := f.metric(t, "pipeguard_streams_in_flight"); n != 1 {
			t.Errorf("%v streams are open while it is allowed", n)
		}
		now.Store(listed(t, acl.Spec{}, nil))
		time.Sleep(decideEvery + time.Second)
		var got raw.Message
		if err := s.RecvMsg(&got); status.Code(err) != codes.PermissionDenied {
			t.Errorf("afterwards: %v", err)
		}
		if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Code != codes.PermissionDenied.String() {
			t.Errorf("recorded as %+v", e.Outcome)
		}
		_ = conn.Close()
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A log removes its oldest records, and those behind the beginning of a call stay until it has ended. A call that does not end must not keep them all.
func TestAStreamEndsWhenTheLogShouldNotKeepItsBeginningAnyMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var overdue atomic.Uint64
		f := start(t, "memory", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
			<-s.Context().Done()
			return context.Cause(s.Context())
		}), func(o *Options) {
			o.Rules = func(string, string) *Rules { return listed(t, forwardSpec, nil) }
			o.Overdue = overdue.Load
		})
		conn := f.client(t, "filesystem-v1")
		begin := func() grpc.ClientStream {
			s, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/v1.Filesystem/New", grpc.ForceCodecV2(raw.Codec{}))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.SendMsg(&raw.Message{1}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return s
		}
		isIntent := func(e audit.Event) bool { return e.Stage == audit.StageRequestReceived }
		older := begin()
		began := f.log.await(t, 1, isIntent)[0].Seq
		begin()
		overdue.Store(began - 1)
		time.Sleep(2 * decideEvery)
		if n := f.metric(t, "pipeguard_streams_in_flight"); n != 2 {
			t.Errorf("%v streams are open while their beginnings may be kept", n)
		}
		overdue.Store(began)
		time.Sleep(decideEvery + time.Second)
		var got raw.Message
		if err := older.RecvMsg(&got); status.Code(err) != codes.Aborted {
			t.Errorf("the older one: %v", err)
		}
		if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Code != codes.Aborted.String() || e.IntentSeq != began {
			t.Errorf("recorded as %+v", e.Outcome)
		}
		if n := f.metric(t, "pipeguard_streams_in_flight"); n != 1 {
			t.Errorf("%v streams are open afterwards", n)
		}
		_ = conn.Close()
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	})
}
