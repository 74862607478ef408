package proxy

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/proxy/raw"
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
