package proxy

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// streamOf makes a stream as the tap does, on a connection that no transport serves.
func streamOf(t *testing.T, p *pipe) (*stream, context.Context) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c := newConn(ours, p, peer.Arrival{})
	s := newStream(c, "/v1.Filesystem/Mkdir")
	if !c.open(s) {
		t.Fatal("the connection has ended")
	}
	p.metrics.opened(p.name, kindRequest)
	p.metrics.arrived(p.name)
	t.Cleanup(s.over) // before the counts are compared
	return s, context.WithValue(context.Background(), streamKey{}, s)
}

func TestPanicWhileDecodingIsARecordAndAnError(t *testing.T) {
	f := start(t, "memory")
	s, ctx := streamOf(t, f.server.pipes[0])
	bad := func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
		panic("strange bytes")
	} //nolint:revive // the order is gRPC's
	if _, err := f.server.pipes[0].guard(bad)(nil, ctx, nil, nil); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	if end := f.log.await(t, 1, terminal)[0]; end.ID != s.id || end.Stage != audit.StagePanic || end.Outcome.Result != audit.ResultPanic || end.Outcome.Error != "panic with a value of type string" {
		t.Errorf("record %+v, outcome %+v", end, end.Outcome)
	}
}

func TestPanicAfterTheRecordMakesNoSecondOne(t *testing.T) {
	f := start(t, "memory")
	p := f.server.pipes[0]
	s, ctx := streamOf(t, p)
	late := func(_ any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order is gRPC's
		p.onBad(ctx, s.fullMethod, errEnded)
		panic("while the response is converted")
	}
	if _, err := p.guard(late)(nil, ctx, nil, nil); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	if n := len(f.log.await(t, 1, terminal)); n != 1 {
		t.Errorf("%d terminal records", n)
	}
}

func TestRequestOfAConnectionThatHasEndedDoesNotRun(t *testing.T) {
	f := start(t, "memory")
	p := f.server.pipes[0]
	s, ctx := streamOf(t, p)
	s.conn.end(audit.ResultIdle, "test") // writes the terminal record of the stream
	p.metrics.accept(p.name)
	if _, err := p.handle(ctx, nil, nil); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	if end := f.log.await(t, 1, terminal)[0]; end.Outcome.Code != "Canceled" {
		t.Errorf("outcome %+v", end.Outcome)
	}
}
