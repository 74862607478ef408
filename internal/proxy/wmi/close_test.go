package wmi

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestCloseWaitsForWhatRunsAndRefusesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1})
		runs := act(t.Context(), p, "Slow")
		synctest.Wait()
		waits := act(t.Context(), p, "Quick")
		synctest.Wait()
		began := time.Now()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Second {
			t.Error(took)
		}
		if err := <-runs; err != nil {
			t.Error(err)
		}
		for _, err := range []error{<-waits, <-act(t.Context(), p, "Quick"), <-ask(t.Context(), p, "Quick")} {
			if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), "never begun") {
				t.Error(err)
			}
		}
		if opened, closed, _ := s.counts(); opened != 1 || closed != 1 || s.begunOf("Quick") != 0 {
			t.Errorf("%d sessions were opened and %d closed", opened, closed)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsTheSessionsOfIdleWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 3})
		for range 3 {
			act(t.Context(), p, "Slow")
		}
		time.Sleep(time.Minute)
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if opened, closed, _ := s.counts(); opened != 3 || closed != 3 {
			t.Errorf("%d sessions were opened and %d closed", opened, closed)
		}
	})
}

func TestCloseOfAPoolThatWasNeverAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := start(t, Options{})
		for range 2 {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1, CloseWait: 3 * time.Second})
		runs := act(t.Context(), p, "Deaf")
		synctest.Wait()
		began := time.Now()
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "still runs after 3s") {
			t.Error(err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Error(took)
		}
		s.letGo()
		if err := <-runs; err != nil {
			t.Error(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseLeavesWhatIsStuckBehindAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := start(t, Options{Workers: 1, Stuck: time.Minute, CloseWait: 2 * time.Minute})
		given := act(t.Context(), p, "Deaf_1")
		if err := <-given; !errors.Is(err, ErrOutcome) {
			t.Error(err)
		}
		runs := act(t.Context(), p, "Deaf_2") // is given up while Close waits
		synctest.Wait()
		began := time.Now()
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "2 calls to WMI were given up") {
			t.Error(err)
		}
		if took := time.Since(began); took != time.Minute {
			t.Error(took)
		}
		if err := <-runs; !errors.Is(err, ErrOutcome) {
			t.Error(err)
		}
		s.letGo()
		synctest.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if opened, closed, running := s.counts(); opened != 2 || closed != 2 || running != 0 {
			t.Errorf("%d sessions were opened and %d closed, %d calls run", opened, closed, running)
		}
	})
}
