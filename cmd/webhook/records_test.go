package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// stalled is a writer that takes nothing until it is released.
type stalled struct {
	release chan struct{}
	taken   []string
	err     error
}

func (s *stalled) Append(_ context.Context, e *audit.Event) (uint64, error) {
	<-s.release
	if s.err == nil {
		s.taken = append(s.taken, e.ID)
	}
	return uint64(len(s.taken)), s.err
}

// admitted is the record of an object that passed, refused that of one that did not.
func admitted() *audit.Event {
	return &audit.Event{ID: "x", Decision: &audit.Decision{Effect: audit.EffectAllow}}
}

func refused() *audit.Event {
	return &audit.Event{ID: "refused", Decision: &audit.Decision{Effect: audit.EffectDeny}}
}

func TestTheRecordOfARefusalIsNeverDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stalled{release: make(chan struct{})}
		r := &records{to: to, close: func() error { return nil }, failed: func(err error) { t.Errorf("failed: %v", err) }}
		r.start()
		for range maxWaiting + 1 {
			_, _ = r.Append(t.Context(), admitted())
			synctest.Wait() // one is taken by the writer
		}
		if _, err := r.Append(t.Context(), admitted()); !errors.Is(err, errFull) {
			t.Fatalf("the queue is not full: %v", err)
		}
		const refusals = 100
		answered := make(chan error, refusals)
		for range refusals {
			go func() {
				_, err := r.Append(t.Context(), refused())
				answered <- err
			}()
		}
		synctest.Wait()
		if len(answered) > 0 {
			t.Fatal("a refusal did not wait for its turn")
		}
		close(to.release)
		for range refusals {
			if err := <-answered; err != nil {
				t.Error(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		written := 0
		for _, id := range to.taken {
			if id == "refused" {
				written++
			}
		}
		if written != refusals {
			t.Errorf("%d refusals were written, want %d", written, refusals)
		}
	})
}

func TestTheEndLetsGoOfRefusalsThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stalled{release: make(chan struct{})}
		r := &records{to: to, close: func() error { return nil }, failed: func(error) {}}
		r.start()
		for range maxWaiting + 1 {
			_, _ = r.Append(t.Context(), admitted())
			synctest.Wait()
		}
		answered := make(chan error, 1)
		go func() {
			_, err := r.Append(t.Context(), refused())
			answered <- err
		}()
		synctest.Wait()
		if err := r.Close(); !errors.Is(err, errStuck) {
			t.Errorf("closed with %v", err)
		}
		if err := <-answered; !errors.Is(err, errClosed) {
			t.Errorf("answered with %v", err)
		}
		close(to.release)
		<-r.done
	})
}

func TestAStalledReaderOfRecordsStopsNobody(t *testing.T) {
	to := &stalled{release: make(chan struct{})}
	r := &records{to: to, close: func() error { return nil }, failed: func(err error) { t.Errorf("failed: %v", err) }}
	r.start()
	refused := 0
	for range maxWaiting + 100 {
		if _, err := r.Append(t.Context(), admitted()); errors.Is(err, errFull) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused < 99 { // one may be on its way
		t.Errorf("%d records were refused, want 99 or 100", refused)
	}
	close(to.release)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if got := len(to.taken); got != maxWaiting+100-refused {
		t.Errorf("%d records were written, want all %d that were taken", got, maxWaiting+100-refused)
	}
	if _, err := r.Append(t.Context(), &audit.Event{}); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestTheEndDoesNotWaitForeverForRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &stalled{release: make(chan struct{})}
		r := &records{to: to, close: func() error { return nil }, failed: func(error) {}}
		r.start()
		if _, err := r.Append(t.Context(), &audit.Event{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); !errors.Is(err, errStuck) {
			t.Errorf("closed with %v, want %v", err, errStuck)
		}
		close(to.release)
		<-r.done
	})
}

func TestARecordThatFailsLaterIsReported(t *testing.T) {
	var reported []error
	to := &stalled{release: make(chan struct{}), err: os.ErrClosed}
	close(to.release)
	r := &records{to: to, close: func() error { return nil }, failed: func(err error) { reported = append(reported, err) }}
	r.start()
	if _, err := r.Append(t.Context(), &audit.Event{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if len(reported) != 1 || !errors.Is(reported[0], os.ErrClosed) {
		t.Errorf("reported %v", reported)
	}
}

func TestRecordsAreWrittenAtOnceWhereTheyAreRequired(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	r, err := openRecords(options{auditLog: file, auditRequired: true}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	seq, err := r.Append(t.Context(), &audit.Event{Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, ID: "now"})
	if err != nil || seq == 0 {
		t.Fatalf("number %d, %v", seq, err)
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), `"id":"now"`) {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
