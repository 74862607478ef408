package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// TestALifetimeEndsTheLastContextAlone shows what package context must go on doing for it.
func TestALifetimeEndsTheLastContextAlone(t *testing.T) {
	for name, derive := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"with a deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 24*time.Hour)
		},
		"without": context.WithCancel,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLifetime(context.WithValue(t.Context(), streamKey{}, "value"))
			l.cancelLast() // of none
			first, cancelFirst := derive(l)
			defer cancelFirst()
			second, cancelSecond := derive(l)
			defer cancelSecond()
			if second.Value(streamKey{}) != "value" {
				t.Error("the connection's values are gone")
			}
			l.cancelLast()
			l.cancelLast()
			if !errors.Is(second.Err(), context.Canceled) || first.Err() != nil || l.Err() != nil {
				t.Errorf("the last context: %v, the one before: %v, the connection: %v", second.Err(), first.Err(), l.Err())
			}
			third, cancelThird := derive(l)
			cancelThird()
			if l.last != nil {
				t.Error("a context that has ended is held")
			}
			fourth, cancelFourth := derive(l)
			defer cancelFourth()
			if !errors.Is(third.Err(), context.Canceled) || fourth.Err() != nil {
				t.Errorf("a context that was cancelled: %v, the next one: %v", third.Err(), fourth.Err())
			}
		})
	}
}

// TestARefusedRequestIsHeldNoLongerThanItsRefusal sends requests that are refused at their headers and have deadlines years away.
func TestARefusedRequestIsHeldNoLongerThanItsRefusal(t *testing.T) {
	const connections, requests, mostEach = 25, 400, 64 // bytes; a context with its timer has 300. More requests of a connection would be too many frames
	var records forgetful
	f := start(t, "memory", func(o *Options) { o.Audit = &records })
	f.settled = true // no records are left to compare; their number is
	said := burst(t, requests, func(w *wire) { w.request(true, ":path", "/malformed", "grpc-timeout", "99999999H") })
	refuse := func() {
		already := records.terminals.Load()
		c := f.raw(t, "filesystem-v1")
		w := &wire{t: t, conn: c}
		w.drain()
		w.write(said)
		for records.terminals.Load() < already+requests {
			time.Sleep(time.Millisecond)
		}
		_ = c.Close()
	}
	refuse()
	before := heldBytes()
	for range connections {
		refuse()
	}
	if after := heldBytes(); after > before+connections*requests*mostEach {
		t.Errorf("%d bytes are held for each refused request", (after-before)/(connections*requests))
	}
	if n := records.terminals.Load(); n != (connections+1)*requests {
		t.Errorf("%d requests were refused", n)
	}
}

// forgetful is an audit.Writer that counts records and keeps none.
type forgetful struct{ records, terminals atomic.Uint64 }

func (l *forgetful) Append(_ context.Context, e *audit.Event) (uint64, error) {
	if terminal(*e) {
		l.terminals.Add(e.Count())
	}
	return l.records.Add(1), nil
}
