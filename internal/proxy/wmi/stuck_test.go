package wmi

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// reports collects what OnStuck was told.
type reports struct {
	mu   sync.Mutex // guards told
	told []string
}

func (r *reports) take(op string, since time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf("%s %s", op, since))
}

func (r *reports) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sorted(r.told)
}

func TestStuckCallIsGivenUpAndItsWorkerReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reports
		p, s := start(t, Options{Workers: 1, Stuck: time.Minute, OnStuck: r.take})
		began := time.Now()
		stuck := act(t.Context(), p, "Deaf")
		synctest.Wait()
		behind := act(t.Context(), p, "Quick")
		err := <-stuck
		if !errors.Is(err, ErrOutcome) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "call Deaf.M: given up after 1m0s") {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Error(took)
		}
		if err := <-behind; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"call Deaf.M 1m0s"}, r.all()); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(Stats{Stuck: 1}, p.Stats()); diff != "" {
			t.Error(diff)
		}

		s.letGo()
		synctest.Wait()
		if diff := cmp.Diff(Stats{}, p.Stats()); diff != "" {
			t.Error(diff)
		}
		if opened, closed, running := s.counts(); opened != 2 || closed != 1 || running != 0 {
			t.Errorf("%d sessions were opened and %d closed, %d calls run", opened, closed, running)
		}
		if s.begunOf("Deaf") != 1 {
			t.Error("it was repeated")
		}
	})
}

func TestStuckCallIsGivenUpAlsoWithoutACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reports
		p, _ := start(t, Options{Workers: 1, OnStuck: r.take})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := <-act(ctx, p, "Deaf"); !errors.Is(err, ErrOutcome) {
			t.Error(err)
		}
		if err := <-act(t.Context(), p, "Quick"); err != nil {
			t.Error(err)
		}
		synctest.Wait() // it is told beside the next call
		if diff := cmp.Diff([]string{"call Deaf.M 2m0s"}, r.all()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestSlowCallIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r reports
		p, s := start(t, Options{Workers: 1, Stuck: time.Minute, OnStuck: r.take})
		done := act(t.Context(), p, "Deaf")
		time.Sleep(time.Minute - time.Nanosecond)
		s.letGo()
		if err := <-done; err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		if len(r.all()) > 0 || p.Stats().Stuck != 0 {
			t.Error(r.all(), p.Stats())
		}
	})
}

func TestStuckReadThatLooksComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1, Stuck: time.Minute})
		if err := <-ask(t.Context(), p, "Reader"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		synctest.Wait()
		if _, closed, running := s.counts(); running != 0 || closed != 1 || p.Stats().Stuck != 0 {
			t.Error(running, closed, p.Stats())
		}
	})
}

func TestTooManyStuckCallsRefuseAllOthersUntilOneReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 2, MaxStuck: 3, Stuck: time.Minute})
		var stuck []<-chan error
		for i := range 4 {
			stuck = append(stuck, act(t.Context(), p, fmt.Sprintf("Deaf_%d", i)))
			synctest.Wait()
		}
		waits := make([]<-chan error, 5)
		time.Sleep(90 * time.Second) // two are given up, two have taken their place
		if diff := cmp.Diff(Stats{Running: 2, Stuck: 2}, p.Stats()); diff != "" {
			t.Error(diff)
		}
		for i := range waits {
			waits[i] = act(t.Context(), p, "Quick")
		}
		for _, ended := range stuck {
			if err := <-ended; !errors.Is(err, ErrOutcome) || errors.Is(err, ErrStuck) {
				t.Error(err)
			}
		}
		// The third had its place taken, which may have served some of them; with the fourth the rest was refused.
		refused := 0
		for _, ended := range waits {
			err := <-ended
			if err == nil {
				continue
			}
			refused++
			if !errors.Is(err, ErrStuck) || !strings.Contains(err.Error(), "never begun") || errors.Is(err, ErrOutcome) {
				t.Error(err)
			}
		}
		if s.begunOf("Quick")+refused != len(waits) {
			t.Errorf("%d were begun and %d refused", s.begunOf("Quick"), refused)
		}
		before := time.Now()
		for range 10 {
			if err := <-ask(t.Context(), p, "Quick"); !errors.Is(err, ErrStuck) {
				t.Error(err)
			}
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("refused after %s, not at once", took)
		}
		if s.most > 5 {
			t.Errorf("%d at a time", s.most)
		}

		s.release <- struct{}{} // one of them returns
		synctest.Wait()
		if err := <-ask(t.Context(), p, "Quick"); err != nil {
			t.Error(err)
		}
		s.letGo()
		synctest.Wait()
		if err := <-act(t.Context(), p, "Quick"); err != nil || p.Stats().Stuck != 0 {
			t.Error(err, p.Stats())
		}
	})
}

func TestThreadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 4, MaxStuck: 4, Queue: 1000, Stuck: time.Minute})
		var done []<-chan error
		for i := range 100 {
			done = append(done, act(t.Context(), p, fmt.Sprintf("Deaf_%d", i)))
		}
		for _, ended := range done {
			if err := <-ended; err == nil {
				t.Error("answered")
			}
		}
		if _, _, running := s.counts(); running > 8 || running != p.Stats().Stuck {
			t.Errorf("%d threads, %+v", running, p.Stats())
		}
	})
}

func TestWhatIsStuckCountsUntilItsSessionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1, Stuck: time.Minute})
		s.panicAtClose = true
		if err := <-act(t.Context(), p, "Deaf"); !errors.Is(err, ErrOutcome) {
			t.Error(err)
		}
		s.letGo()
		synctest.Wait()
		if _, closed, _ := s.counts(); closed != 1 || p.Stats().Stuck != 0 {
			t.Error(closed, p.Stats())
		}
	})
}
