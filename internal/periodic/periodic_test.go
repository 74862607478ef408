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
