package nodes

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// A cluster without GuardedNodes may stay so for months. Each replica says so once, and again when it has another reason.
func TestAFaultThatLastsIsToldOnce(t *testing.T) {
	undefined, forbidden := errors.New("no matches for kind GuardedNode"), errors.New("forbidden")
	for name, start := range map[string]struct {
		with    func(log *zap.Logger, watch func() error) func(context.Context) error
		unknown string
		known   string
	}{
		"a replica": {func(log *zap.Logger, watch func() error) func(context.Context) error {
			r := newServing(newServer(), log, time.Now)
			r.watch = func(context.Context, *Serving) error { return watch() }
			return r.Start
		}, "which nodes serve which pipes is not known", "which nodes serve which pipes is known"},
		"the leader": {func(log *zap.Logger, watch func() error) func(context.Context) error {
			c := newCounter(newServer(), time.Now)
			c.Log, c.watch = log, func(context.Context, *counter) error { return watch() }
			return c.Start
		}, "nodes are not counted", "nodes are counted"},
	} {
		synctest.Test(t, func(t *testing.T) {
			core, logged := observer.New(zap.InfoLevel)
			var attempts atomic.Int64
			var fails atomic.Pointer[error]
			fails.Store(&undefined)
			run := start.with(zap.New(core), func() error { attempts.Add(1); return *fails.Load() })
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- run(ctx) }()
			after := func(d time.Duration, want ...string) {
				t.Helper()
				time.Sleep(d)
				synctest.Wait()
				var got []string
				for _, entry := range logged.TakeAll() {
					got = append(got, entry.Message)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s logs %q, want %q", name, got, want)
				}
			}
			after(time.Second, start.unknown)
			after(100 * every)
			if n := attempts.Load(); n < 100 {
				t.Errorf("%s has tried %d times", name, n)
			}
			fails.Store(&forbidden)
			after(10*every, start.unknown)
			fails.Store(new(error))
			after(10*every, start.known)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAListThatFailsIsToldOnceUntilItIsOver(t *testing.T) {
	core, logged := observer.New(zap.InfoLevel)
	s := newServer()
	r := newServing(s, zap.New(core), atNoon)
	away := errors.New("away")
	for i, step := range []struct {
		err  error
		want int
	}{{nil, 0}, {away, 1}, {away, 1}, {nil, 2}, {nil, 2}, {away, 3}} {
		s.list = func(context.Context) error { return step.err }
		r.collect(t.Context())
		if got := logged.Len(); got != step.want {
			t.Errorf("step %d: %d lines, want %d", i, got, step.want)
		}
	}
}
