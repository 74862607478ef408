package policy

import (
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
				cancel, stop := limit(t.Context(), timeout, func() time.Duration { return time.Hour + time.Since(began)/tt.share })
				defer stop()
				time.Sleep(tt.ends - 1)
				if synctest.Wait(); cancel.Cancelled() {
					t.Errorf("it was ended before %v", tt.ends)
				}
				time.Sleep(time.Nanosecond)
				if synctest.Wait(); !cancel.Cancelled() {
					t.Errorf("it was not ended after %v", tt.ends)
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
