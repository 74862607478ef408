package policy

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnEvaluationThatGetsNoProcessorIsNotEndedByTheClock(t *testing.T) {
	const timeout = 250 * time.Millisecond
	for _, tt := range []struct {
		name  string
		share float64 // of a processor that the process gets
		ends  time.Duration
	}{
		{"all of one", 1, timeout},
		{"nearly all of one", 0.99, timeout * 100 / 99}, // it had twice its time
		{"a tenth", 0.1, 10 * timeout},
		{"next to nothing", 0.001, longest * timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				used := func() time.Duration { return time.Hour + time.Duration(tt.share*float64(time.Since(began))) }
				cancel, stop := limit(t.Context(), timeout, used)
				defer stop()
				ctx, release := within(t.Context(), timeout, used)
				defer release()
				time.Sleep(tt.ends - time.Millisecond)
				if synctest.Wait(); cancel.Cancelled() || ctx.Err() != nil {
					t.Errorf("it was ended before %v", tt.ends)
				}
				time.Sleep(time.Millisecond + timeout/20)
				if synctest.Wait(); !cancel.Cancelled() || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("it was not ended after %v: %v", tt.ends, context.Cause(ctx))
				}
			})
		})
	}
}

// Eight large reviews at one time were refused that take a fifth of the time-out each.
func TestAnEvaluationIsNotEndedForTheTimeOfOthers(t *testing.T) {
	const timeout, processors, others = 250 * time.Millisecond, 2, 7
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := share{used: func() time.Duration { return processors * time.Since(began) }}
		s.change(others)
		time.Sleep(time.Hour)
		s.change(1)
		cancel, stop := limit(t.Context(), timeout, s.time)
		defer stop()
		time.Sleep(timeout*(1+others)/processors - 1)
		if synctest.Wait(); cancel.Cancelled() {
			t.Error("it was ended before it could have had its time")
		}
		time.Sleep(timeout)
		if synctest.Wait(); !cancel.Cancelled() {
			t.Error("it was not ended when it had")
		}
		s.change(-others)
		alone, stop := limit(t.Context(), timeout, s.time)
		defer stop()
		time.Sleep(timeout)
		if synctest.Wait(); !alone.Cancelled() {
			t.Error("one that is alone was not ended after its time")
		}
	})
}

func TestADecisionSharesTheProcessorWithOthers(t *testing.T) {
	const timeout, others = 20 * time.Millisecond, 4
	e := activated(t, deciding(endless), Options{Timeout: timeout, ProcessTime: func() time.Duration { return time.Since(clock) }})
	e.share.change(others)
	began := time.Now()
	if _, err := e.Decide(t.Context(), value(t, map[string]any{"l": make([]int, 1000)})); reasonOf(err) != ReasonTimeout || time.Since(began) < timeout*others {
		t.Errorf("%v after %v, want at least %v", err, time.Since(began), timeout*others)
	}
	if e.share.sharing != others {
		t.Errorf("%d are counted that have ended", e.share.sharing-others)
	}
}

func TestProcessTimeIsThatOfTheProcessor(t *testing.T) {
	before := processTime()
	for n, began := 0, time.Now(); processTime() <= before; n++ { // it grows by work, sooner or later
		if time.Since(began) > time.Minute {
			t.Fatalf("%d rounds took no processor time", n)
		}
	}
}

// A module whose evaluations take seconds passed its trial, which has time for many, and then refused every review.
func TestAPolicyThatIsTooSlowToDecideIsNotActivated(t *testing.T) {
	e, err := New(Options{Timeout: 5 * time.Millisecond, TestTimeout: time.Hour, Checks: []Check{{
		Name: "one decision", Input: map[string]any{"l": make([]int, 1000)}, Want: func(Decision) error { return nil },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), deciding(endless)); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("%v", err)
	}
}
