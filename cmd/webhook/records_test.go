package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	r, err := openRecords(options{configuration: configuration{Audit: auditOptions{Log: file, Required: true}}}, nil, nil)
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

func TestRecordsThatWaitAreCutAsTheirLinesWillBe(t *testing.T) {
	groups := make([]string, 5000)
	for i := range groups {
		groups[i] = fmt.Sprint("group-", i)
	}
	e := audit.Event{Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, ID: "a", Time: time.Unix(1, 0),
		Who: &audit.Who{User: &audit.WhoUser{Name: strings.Repeat("u", 1<<20), Groups: groups}}}
	held := make(chan *audit.Event, 1)
	r := &records{to: taker(func(e *audit.Event) { held <- e }), close: func() error { return nil }, failed: func(err error) { t.Errorf("failed: %v", err) }}
	r.start()
	if _, err := r.Append(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	got := <-held
	if n := len(got.Who.User.Groups); n > 100 || len(got.Who.User.Name) > audit.MaxRecord {
		t.Errorf("it waits with %d groups and a name of %d bytes", n, len(got.Who.User.Name))
	}
	want, err := audit.Encode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := audit.Encode(nil, *got); err != nil || string(line) != string(want) {
		t.Errorf("%v\n%s\nwant\n%s", err, line, want)
	}
	if len(groups) != len(e.Who.User.Groups) {
		t.Error("the caller's event was changed")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// taker is a writer that hands on what it is given.
type taker func(*audit.Event)

func (f taker) Append(_ context.Context, e *audit.Event) (uint64, error) {
	f(e)
	return 1, nil
}
