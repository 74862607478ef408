package forward

import (
	"context"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// mostCalls is how many calls of one caller are passed on at one time, and mostEach what one of them may hold whose messages nobody reads.
const (
	mostCalls = 16
	mostEach  = 24 << 20
)

// A caller that asks for large messages and reads none of them has few calls at one time, and each holds few of these.
func TestLargeMessagesThatNobodyReadsAreFew(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	large := random(3 << 20)
	e.handler(func(_ any, s grpc.ServerStream) error {
		for {
			if err := s.SendMsg(&large); err != nil {
				return err
			}
		}
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	ended := make(chan error, 2*mostCalls)
	for range 2 * mostCalls {
		c := g.client(grpc.WithStaticStreamWindowSize(64<<10 - 1))
		s, err := c.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/test.v1.Echo/Chat", grpc.ForceCodecV2(raw.Codec{}))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, err := s.Header() // it comes when the call is passed on, or refused
			ended <- err
		}()
	}
	for range 2 * mostCalls {
		<-ended
	}
	time.Sleep(time.Second)
	if n := e.calls.Load(); n == 0 || n > mostCalls {
		t.Errorf("%d calls were passed on at one time, want %d at most", n, mostCalls)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	held := int64(after.HeapAlloc) - int64(before.HeapAlloc) //nolint:gosec // both are far below 2^63
	t.Logf("%d MiB are held", held>>20)
	if held > mostCalls*mostEach {
		t.Errorf("%d MiB are held for %d calls", held>>20, mostCalls)
	}
	cancel()
	e.handler(kinds)
	for began := time.Now(); ; { // the calls end, and others are passed on
		_, err := call(within(t), g.client(), "/test.v1.Echo/Unary", grpc.StreamDesc{}, raw.Message("x"))
		if err == nil {
			break
		}
		if status.Code(err) != codes.ResourceExhausted || time.Since(began) > patience {
			t.Fatal(err)
		}
	}
}
