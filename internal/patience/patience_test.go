package patience_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/patience"
)

func TestWhatNeverAnswersIsWaitedForInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		close(answers)
		var reads atomic.Int64
		var wait atomic.Pointer[chan struct{}] // what a read waits for
		wait.Store(&answers)
		r := patience.New(time.Minute, func() (int, error) {
			n := reads.Add(1)
			<-*wait.Load()
			return int(n), nil
		})
		read := func(want int) {
			t.Helper()
			if n, err := r.Read(t.Context()); n != want || err != nil {
				t.Fatalf("got %d, %v, want %d", n, err, want)
			}
		}
		read(1)

		stuck := make(chan struct{})
		wait.Store(&stuck)
		for range 3 {
			began := time.Now()
			if n, err := r.Read(t.Context()); n != 0 || !errors.Is(err, patience.ErrLate) || time.Since(began) != time.Minute {
				t.Fatalf("got %d, %v after %s", n, err, time.Since(began))
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if n := reads.Load(); n != 2 {
			t.Errorf("%d reads while one does not return", n)
		}

		// It answers in the end, with what was there once.
		time.AfterFunc(time.Second, func() {
			wait.Store(&answers)
			close(stuck)
		})
		read(3)
	})
}

func TestAnErrorIsReturnedAsItIs(t *testing.T) {
	gone := errors.New("gone")
	r := patience.New(time.Minute, func() (int, error) { return 7, gone })
	if n, err := r.Read(t.Context()); n != 7 || !errors.Is(err, gone) {
		t.Errorf("got %d, %v", n, err)
	}
}
