package policy

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
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

// What a process does beside an evaluation, such as reading thousands of requests, was counted against it.
func TestAnEvaluationIsNotEndedForTheTimeOfOthers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the time by the clock is that of all")
	}
	own, others := (&Options{ThreadTime: threadTime}).work(), (&Options{ThreadTime: threadTime}).work()
	var stop atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		others.run(func() {
			for !stop.Load() { //nolint:revive // it works
			}
		})
	})
	const long = 100 * time.Millisecond
	own.run(func() {
		for others.used() < long {
			time.Sleep(time.Millisecond)
		}
		if used := own.used(); used > long/2 {
			t.Errorf("%v of processor time for others are counted, of %v", used, others.used())
		}
		for before := own.used(); own.used() < before+long/10; { //nolint:revive // it works
		}
	})
	stop.Store(true)
	all.Wait()
	ended := own.used()
	if ended < long/10 || own.used() != ended || others.used() < long {
		t.Errorf("%v and %v were used", ended, others.used())
	}
}

// An evaluation that needs a long stack goes on on another thread.
func TestTheTimeOfEachThreadOfAnEvaluationCounts(t *testing.T) {
	WithoutRaceDetector(t)
	var threads, read atomic.Int64
	o := patient
	o.ThreadTime = func() (func() time.Duration, func()) {
		n := threads.Add(1)
		return func() time.Duration {
			read.Store(max(read.Load(), n))
			return time.Since(clock)
		}, func() { threads.Add(-1) }
	}
	m := deciding(`{"allowed": count([1 | long]) == 1, "findings": []}`).with(longWay(leaves["a comparison"]))
	e := activated(t, m, o)
	read.Store(0)
	if _, err := e.Decide(t.Context(), value(t, map[string]any{})); reasonOf(err) != ReasonMemory {
		t.Error(err)
	}
	if read.Load() != 2 || threads.Load() != 0 {
		t.Errorf("%d threads were measured, want 2; %d still are", read.Load(), threads.Load())
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
