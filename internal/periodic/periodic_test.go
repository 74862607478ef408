package periodic_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

func TestWorkIsRepeatedUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		begun, calls := time.Now(), 0
		periodic.Run(ctx, time.Minute, func() {
			if calls++; time.Since(begun) != time.Duration(calls)*time.Minute {
				t.Errorf("call %d comes after %v", calls, time.Since(begun))
			}
			if calls == 3 {
				stop()
			}
		})
		if calls != 3 {
			t.Errorf("%d calls", calls)
		}
	})
}

func TestWaitEndsByTimeByASignalOrWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		wake := make(chan struct{}, 1)
		wait := func(after time.Duration, goesOn bool) {
			t.Helper()
			begun := time.Now()
			if got := periodic.Wait(ctx, time.Minute, wake); got != goesOn || time.Since(begun) != after {
				t.Errorf("%t after %v, want %t after %v", got, time.Since(begun), goesOn, after)
			}
		}
		wait(time.Minute, true)
		for range 3 {
			periodic.Signal(wake)
		}
		wait(0, true)
		wait(time.Minute, true) // three signals were one
		time.AfterFunc(time.Second, stop)
		wait(time.Second, false)
		periodic.Signal(wake)
		wait(0, false)
		if periodic.Sleep(ctx, -time.Second) {
			t.Error("the time was over, and so was the context")
		}
	})
}
