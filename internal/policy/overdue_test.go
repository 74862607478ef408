package policy

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// stuck are modules whose activation does not end before free is closed, as one that the compiler does not end.
func stuck(n int, free <-chan struct{}) Modules {
	m := small().with(map[string]string{"n.rego": fmt.Sprintf("package lib\n\nn := %d\n", n)})
	m.Checks = []Check{{Name: "stuck", Input: map[string]any{}, Want: func(Decision) error { <-free; return nil }}}
	return m
}

func TestAnActivationThatDoesNotEndIsAbandonedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := activated(t, small(), patient)
		before, _ := e.Active()
		free := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Activate(ctx, stuck(1, free)); !errors.Is(err, errAbandoned) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if s, _ := e.Active(); s != before {
			t.Error("the policies before do not decide any more")
		}
		if _, err := e.Activate(t.Context(), small()); err != nil {
			t.Errorf("other modules: %v", err)
		}
		active, _ := e.Active()
		close(free)
		synctest.Wait()
		if s, _ := e.Active(); s != active {
			t.Error("what was abandoned decides when it is done")
		}
	})
}

func TestModulesThatRanOutOfTimeAreNotTriedAgainForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{TestTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		free := make(chan struct{})
		if _, err := e.Activate(t.Context(), stuck(1, free)); !errors.Is(err, errAbandoned) {
			t.Fatalf("got %v", err)
		}
		close(free)
		synctest.Wait()
		if _, err := e.Activate(t.Context(), stuck(1, free)); !errors.Is(err, errOverdue) || !ranOutOfTime(err) {
			t.Errorf("the same modules: %v", err)
		}
		if _, err := e.Activate(t.Context(), stuck(2, free)); err != nil {
			t.Errorf("others: %v", err)
		}
		time.Sleep(overdueFor) // of the bubble's clock
		if _, err := e.Activate(t.Context(), stuck(1, free)); err != nil {
			t.Errorf("the same modules later: %v", err)
		}
	})
}

func TestAbandonedActivationsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{TestTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		free := make(chan struct{})
		var began atomic.Int32
		for n := range 10 {
			m := stuck(n, free)
			want := m.Checks[0].Want
			m.Checks[0].Want = func(d Decision) error { began.Add(1); return want(d) }
			if _, err := e.Activate(t.Context(), m); !ranOutOfTime(err) || n >= maxAbandoned != errors.Is(err, errCrowded) {
				t.Errorf("%d: %v", n, err)
			}
		}
		if n := began.Load(); n != maxAbandoned {
			t.Errorf("%d are under way, want %d", n, maxAbandoned)
		}
		close(free)
		synctest.Wait()
		if _, err := e.Activate(t.Context(), small()); err != nil {
			t.Errorf("when they have ended: %v", err)
		}
	})
}

func TestFewOverdueModulesAreRemembered(t *testing.T) {
	var o hashes
	now := time.Now()
	key := func(n int) (h [32]byte) { h[0], h[1] = byte(n), byte(n>>8); return h }
	for n := range 3 * maxOverdue {
		o.add(key(n), now.Add(time.Duration(n)))
	}
	if len(o.when) != maxOverdue || o.has(key(0), time.Time{}) || !o.has(key(3*maxOverdue-1), time.Time{}) {
		t.Errorf("%d are remembered", len(o.when))
	}
}

func TestWhatWasActivatedBeforeIsTakenBesideAbandonedActivations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := activated(t, small(), Options{TestTimeout: time.Second})
		free := make(chan struct{})
		for n := range maxAbandoned + 1 {
			if _, err := e.Activate(t.Context(), stuck(n, free)); !ranOutOfTime(err) {
				t.Fatalf("%d: %v", n, err)
			}
		}
		if _, err := e.Activate(t.Context(), small().WithData(map[string]any{"other": 1})); err != nil {
			t.Errorf("other data: %v", err)
		}
		close(free)
		synctest.Wait()
	})
}

// countdown is a context that ends when it was asked a number of times.
type countdown struct {
	context.Context
	left *atomic.Int32
}

func (c countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestTheCompilerStopsSoonAfterNobodyWaitsForIt(t *testing.T) {
	o, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	for n := int32(0); n <= int32(len(stages)+1); n++ { //nolint:gosec // few
		c := countdown{t.Context(), new(atomic.Int32)}
		c.left.Store(n)
		_, problems := compile(c, small(), o)
		if asked := n - c.left.Load(); len(problems) == 0 || problems[0].Code != CodeInternal || asked > n+3 {
			t.Errorf("after %d questions: %d were asked, %v", n, asked, problems)
		}
	}
}
