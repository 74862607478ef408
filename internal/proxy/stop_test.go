package proxy

import (
	"context"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func TestStopFinishesCallsInFlight(t *testing.T) {
	f := start(t, "unix")
	f.raw(t, "filesystem-v1")      // a silent connection must not delay the stop
	f.raw(t, "filesystem-v1beta1") // nor one on another pipe
	began, release := make(chan struct{}), make(chan struct{})
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		close(began)
		<-release
		return answer(call)
	})
	answered := make(chan error, 1)
	c := f.client(t, "filesystem-v1")
	go func() { answered <- mkdirs["v1"](context.Background(), c) }()
	<-began
	for start := time.Now(); f.metric(t, "pipeguard_connections_accepted_total") < 3; { // a socket connects before it is accepted
		if time.Since(start) > patience {
			t.Fatal("a connection is not accepted")
		}
		time.Sleep(time.Millisecond)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- f.stop() }()
	// The silent connections end at once; the one that carries the call does not.
	f.log.await(t, 2, func(e audit.Event) bool {
		return connection(e) && e.Outcome.Result == audit.ResultIdle && strings.Contains(e.Outcome.Error, "the proxy stopped")
	})
	select {
	case err := <-stopped:
		t.Fatalf("stopped while a call was in flight: %v", err)
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Result != audit.ResultOK {
		t.Errorf("outcome %+v", e.Outcome)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if conn, err := f.dialers["csi-proxy-filesystem-v1"](ctx); err == nil {
		_ = conn.Close()
		t.Error("the pipe is still open after the stop")
	}
}

func TestStopCancelsCallsThatTakeTooLong(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.StopTimeout = 100 * time.Millisecond })
	began := make(chan struct{})
	f.handler(func(ctx context.Context, _ *apiserver.Call) (proto.Message, error) {
		close(began)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	answered := make(chan error, 1)
	c := f.client(t, "filesystem-v1")
	go func() { answered <- mkdirs["v1"](context.Background(), c) }()
	<-began
	if err := f.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := <-answered; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Errorf("the call in flight: %v", err)
	}
	if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Code != "Canceled" || e.IntentSeq == 0 {
		t.Errorf("outcome %+v", e.Outcome)
	}
}

func TestStopSaysWhichCallsDoNotEnd(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.StopTimeout = 50 * time.Millisecond })
	began, release := make(chan struct{}), make(chan struct{})
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		close(began)
		<-release // deaf to its context
		return answer(call)
	})
	c := f.client(t, "filesystem-v1")
	answered := make(chan error, 1)
	go func() { answered <- mkdirs["v1"](context.Background(), c) }()
	<-began
	if err := f.stop(); err == nil || !strings.Contains(err.Error(), "csi-proxy-filesystem-v1: calls did not end") {
		t.Errorf("stop: %v", err)
	}
	close(release)
	<-answered
	f.log.await(t, 1, terminal)
	f.log.await(t, 1, connection)
	for deadline := within(t); f.metric(t, "pipeguard_audit_open") != 0; { // gRPC says so after the records
		if deadline.Err() != nil {
			t.Fatal("a call is still open")
		}
	}
	f.stop = func() error { return nil }
}

// A client that begins a request, does not finish it and answers nothing else would be waited for until it is cut off.
func TestAnUnfinishedRequestDoesNotDelayAStop(t *testing.T) {
	stopBeside := func(t *testing.T, attack func(*wire), stranger bool) (took time.Duration) {
		synctest.Test(t, func(t *testing.T) {
			f, dial := startDoors(t, outsider("a"))
			kept := f.client(t, "filesystem-v1") // a driver that idles
			if err := mkdirs["v1"](within(t), kept); err != nil {
				t.Fatal(err)
			}
			if attack != nil {
				c := f.raw
				if stranger {
					c = func(t testing.TB, _ string) net.Conn { return dial(t) }
				}
				for range 8 {
					w := wireOver(t, c(t, "filesystem-v1"))
					w.drain()
					attack(w)
				}
				synctest.Wait()
			}
			began := time.Now()
			if err := f.stop(); err != nil {
				t.Errorf("stop: %v", err)
			}
			took = time.Since(began)
			_ = kept.Close()
		})
		return took
	}
	attacks := map[string]func(*wire){
		"an established connection": func(*wire) {},
		"headers alone":             func(w *wire) { w.request(false) },
		"half a message":            func(w *wire) { w.request(false); w.must(w.framer.WriteData(1, false, []byte{0, 0, 0, 0, 6, 10})) },
	}
	alone := stopBeside(t, nil, false)
	for name, attack := range attacks {
		if took := stopBeside(t, attack, true); took > alone {
			t.Errorf("%s of strangers: a stop took %v, and %v without", name, took, alone)
		}
		if took, most := stopBeside(t, attack, false), alone+drainTime+3*quietTime; took > most {
			t.Errorf("%s of callers that rules name: a stop took %v, want %v at most", name, took, most)
		}
	}
}

// A request that comes while the pipe stops is served if it is whole, and ends if it is not.
func TestARequestThatIsCutOffByAStopIsRecordedAsThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "memory")
		w := f.wire(t)
		w.drain()
		w.request(false)
		synctest.Wait()
		if err := f.stop(); err != nil {
			t.Error(err)
		}
		if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Result != audit.ResultRejected || e.Outcome.Code != "Unavailable" || !strings.Contains(e.Outcome.Error, "stopped") {
			t.Errorf("outcome %+v", e.Outcome)
		}
	})
}
