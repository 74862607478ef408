package forward

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

func random(n int) raw.Message {
	m := make(raw.Message, n)
	_, _ = rand.Read(m) // it does not fail
	return m
}

func TestEveryKindOfCallPassesByteForByte(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	guarded, direct := g.client(), dial(t, g.back, g.pipes)
	calls := 0
	for _, size := range []int{0, 1, 70_000, 3 << 20} {
		for method, desc := range map[string]grpc.StreamDesc{
			"/test.v1.Echo/Unary":   {},
			"/test.v1.Echo/Collect": {ClientStreams: true},
			"/test.v1.Echo/Repeat":  {ServerStreams: true},
			"/test.v1.Echo/Chat":    {ClientStreams: true, ServerStreams: true},
		} {
			sent := []raw.Message{random(size)}
			if desc.ClientStreams {
				sent = []raw.Message{random(size / 3), random(size / 4), {}, random(size / 3)}
			}
			want, err := call(within(t), direct, method, desc, sent...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := call(within(t), guarded, method, desc, sent...)
			if err != nil {
				t.Fatalf("%s with %d bytes: %v", method, size, err)
			}
			calls++
			if !slices.EqualFunc(got, want, func(a, b raw.Message) bool { return string(a) == string(b) }) {
				t.Errorf("%s with %d bytes: other bytes than without the guard", method, size)
			}
		}
	}
	for _, end := range g.log.terminals(t, calls) {
		if end.Outcome.Result != audit.ResultOK || end.Outcome.Code != "OK" || end.IntentSeq == 0 {
			t.Errorf("%+v, outcome %+v", end, end.Outcome)
		}
	}
	if n := e.calls.Load(); n != int64(2*calls) {
		t.Errorf("the server saw %d calls, want %d", n, 2*calls)
	}
}

func TestRecordOfAForwardedCall(t *testing.T) {
	g := newGuard(t)
	serveEcho(t, g.back, g.pipes)
	if _, err := unary(within(t), g.client(), "/test.v1.Echo/Unary", random(10)); err != nil {
		t.Fatal(err)
	}
	end := g.log.terminals(t, 1)[0]
	want := &audit.What{
		Pipe: g.front, Group: `\\.\pipe\` + g.front, Method: "/test.v1.Echo/Unary", FullMethod: "/test.v1.Echo/Unary", Verb: "write",
	}
	if diff := cmp.Diff(want, end.What); diff != "" {
		t.Error(diff)
	}
	if end.Decision.Rule != "driver" || end.Who.Process.Exe != `C:\driver\node.exe` {
		t.Errorf("decision %+v, who %+v", end.Decision, end.Who)
	}
}

func TestMetadataTrailersAndStatusPass(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	var seen metadata.MD
	e.handler(func(_ any, s grpc.ServerStream) error {
		seen, _ = metadata.FromIncomingContext(s.Context())
		_ = s.SetHeader(metadata.Pairs("back", "1", "back", "2", "back-bin", "\x00\xff"))
		s.SetTrailer(metadata.Pairs("end", "3", "end-bin", "\xfe\x00"))
		if err := s.SendMsg(&raw.Message{1}); err != nil {
			return err
		}
		st, err := status.New(codes.DataLoss, "half of it: ü\n").WithDetails(durationpb.New(time.Hour))
		if err != nil {
			return err
		}
		return st.Err()
	})
	ctx := metadata.AppendToOutgoingContext(within(t), "to", "a", "to", "b", "to-bin", "\x00\x01\xff", "grpc-trace-bin", "\x07")
	s, err := g.client(grpc.WithUserAgent("somebody")).NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.v1.Echo/X", rawCalls, grpc.CallContentSubtype("json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SendMsg(&raw.Message{}), s.CloseSend()); err != nil {
		t.Fatal(err)
	}
	header, err := s.Header()
	if err != nil {
		t.Fatal(err)
	}
	if m, err := receive(s); err != nil || string(m) != "\x01" {
		t.Errorf("message %q, %v", m, err)
	}
	_, err = receive(s)
	st := status.Convert(err)
	if st.Code() != codes.DataLoss || st.Message() != "half of it: ü\n" || len(st.Details()) != 1 {
		t.Errorf("status %v", st.Proto())
	} else if d, ok := st.Details()[0].(*durationpb.Duration); !ok || d.AsDuration() != time.Hour {
		t.Errorf("details %v", st.Details())
	}
	for name, pair := range map[string][2]any{
		"to":             {[]string{"a", "b"}, seen.Get("to")},
		"to-bin":         {[]string{"\x00\x01\xff"}, seen.Get("to-bin")},
		"grpc-trace-bin": {[]string{"\x07"}, seen.Get("grpc-trace-bin")},
		"content-type":   {[]string{"application/grpc+json"}, seen.Get("content-type")},
		":authority":     {[]string{"localhost"}, seen.Get(":authority")},
		"back":           {[]string{"1", "2"}, header.Get("back")},
		"back-bin":       {[]string{"\x00\xff"}, header.Get("back-bin")},
		"end":            {[]string{"3"}, s.Trailer().Get("end")},
		"end-bin":        {[]string{"\xfe\x00"}, s.Trailer().Get("end-bin")},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Error(name, diff)
		}
	}
	if agent := strings.Join(seen.Get("user-agent"), " "); strings.Contains(agent, "somebody") {
		t.Errorf("the user agent is said to be %q", agent)
	}
	if end := g.log.terminals(t, 1)[0]; end.Outcome.Code != "DataLoss" || end.Outcome.Error != "half of it: ü\n" || end.Outcome.Result != audit.ResultError {
		t.Errorf("outcome %+v", end.Outcome)
	}
}

func TestWhatIsOfAConnectionIsNotPassedOn(t *testing.T) {
	for key, want := range map[string]bool{
		":path": false, ":authority": false, "content-type": false, "te": false, "host": false, "user-agent": false, "connection": false,
		"grpc-timeout": false, "grpc-encoding": false, "grpc-accept-encoding": false, "grpc-status-details-bin": false, "grpc-previous-rpc-attempts": false, "": false,
		"authorization": true, "x-request-id": true, "grpc-trace-bin": true, "grpcx": true,
	} {
		if isPassable(key) != want {
			t.Errorf("%q passes: %v", key, !want)
		}
	}
}

func TestCallerThatLeavesEndsTheCallAtTheServer(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	ended := make(chan error, 1)
	e.handler(func(_ any, s grpc.ServerStream) error {
		if err := s.SendMsg(&raw.Message{1}); err != nil {
			return err
		}
		<-s.Context().Done()
		ended <- s.Context().Err()
		return s.Context().Err()
	})
	ctx, cancel := context.WithCancel(within(t))
	s, err := g.client().NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.v1.Echo/Watch", rawCalls)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := receive(s); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the server's context ended with %v", err)
	}
	if end := g.log.terminals(t, 1)[0]; end.Outcome.Code != "Canceled" {
		t.Errorf("outcome %+v", end.Outcome)
	}
}

func TestServerThatEndsACallStopsItsCaller(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	e.handler(func(_ any, s grpc.ServerStream) error {
		if _, err := receive(s); err != nil {
			return err
		}
		return status.Error(codes.OutOfRange, "enough")
	})
	s, err := g.client().NewStream(within(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.v1.Echo/Upload", rawCalls)
	if err != nil {
		t.Fatal(err)
	}
	part := random(10_000)
	for !errors.Is(err, io.EOF) { // until the caller is told
		if err = s.SendMsg(&part); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if _, err := receive(s); status.Code(err) != codes.OutOfRange {
		t.Errorf("the caller is told %v", err)
	}
	if end := g.log.terminals(t, 1)[0]; end.Outcome.Code != "OutOfRange" || end.Outcome.Error != "enough" {
		t.Errorf("outcome %+v", end.Outcome)
	}
}

func TestDeadlineOfTheCallerReachesTheServer(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	left := make(chan time.Duration, 1)
	e.handler(func(_ any, s grpc.ServerStream) error {
		deadline, ok := s.Context().Deadline()
		if !ok {
			t.Error("the server has no deadline")
		}
		left <- time.Until(deadline)
		<-s.Context().Done()
		return s.Context().Err()
	})
	ctx, cancel := context.WithTimeout(within(t), time.Second)
	defer cancel()
	if _, err := unary(ctx, g.client(), "/test.v1.Echo/Unary", nil); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if d := <-left; d > time.Second {
		t.Errorf("the server had %v", d)
	}
	if end := g.log.terminals(t, 1)[0]; end.Outcome.Code != "DeadlineExceeded" && end.Outcome.Code != "Canceled" { // whose clock is first
		t.Errorf("outcome %+v", end.Outcome)
	}
}

func TestNeitherSideIsReadFasterThanTheOtherTakesIt(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	const most, size = 4000, 32 << 10 // 125 MiB in all
	sent := make(chan int, 1)
	e.handler(func(_ any, s grpc.ServerStream) error {
		part, n := random(size), 0
		var err error
		for ; n < most && err == nil; n++ {
			err = s.SendMsg(&part)
		}
		sent <- n
		return err // the caller's time is over
	})
	ctx, cancel := context.WithTimeout(within(t), time.Second)
	defer cancel()
	s, err := g.client().NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/test.v1.Echo/Flood", rawCalls)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.SendMsg(&raw.Message{}), s.CloseSend()); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done() // nothing is read
	if n := <-sent; n == most {
		t.Errorf("all %d messages were taken from the server although nobody reads them", n)
	}
}

func TestMessagesBeyondTheBoundAreRefused(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes, grpc.MaxRecvMsgSize(64<<20))
	c := g.client()
	big := proxy.MaxForwardedMessage + 1
	_, err := unary(within(t), c, "/test.v1.Echo/Unary", random(big))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request of %d bytes: %v", big, err)
	}
	e.handler(func(_ any, s grpc.ServerStream) error {
		m := random(big)
		return s.SendMsg(&m)
	})
	if _, err := unary(within(t), c, "/test.v1.Echo/Unary", nil, grpc.MaxCallRecvMsgSize(64<<20)); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a response of %d bytes: %v", big, err)
	}
	for i, end := range g.log.terminals(t, 2) {
		if end.Outcome.Code != "ResourceExhausted" {
			t.Errorf("record %d: %+v", i, end.Outcome)
		}
	}
}
