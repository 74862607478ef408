package policy

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnEvaluationThatGetsNoProcessorIsNotEndedByTheClock(t *testing.T) {
	const timeout = 250 * time.Millisecond
	for _, tt := range []struct {
		name  string
		share time.Duration // of a processor that the process gets: one part in so many
		ends  time.Duration
	}{
		{"all of one", 1, timeout},
		{"a tenth", 10, 10 * timeout},
		{"next to nothing", 1000, longest * timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				used := func() time.Duration { return time.Hour + time.Since(began)/tt.share }
				cancel, stop := limit(t.Context(), timeout, used)
				defer stop()
				ctx, release := within(t.Context(), timeout, used)
				defer release()
				time.Sleep(tt.ends - 1)
				if synctest.Wait(); cancel.Cancelled() || ctx.Err() != nil {
					t.Errorf("it was ended before %v", tt.ends)
				}
				time.Sleep(time.Nanosecond)
				if synctest.Wait(); !cancel.Cancelled() || !errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
					t.Errorf("it was not ended after %v: %v", tt.ends, context.Cause(ctx))
				}
			})
		})
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
