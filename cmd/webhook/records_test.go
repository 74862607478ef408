package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
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
	dir := filepath.Join(t.TempDir(), "audit")
	r := openDirectory(t, dir, true)
	seq, err := r.Append(t.Context(), &audit.Event{Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, ID: "now"})
	if err != nil || seq == 0 {
		t.Fatalf("number %d, %v", seq, err)
	}
	if ids := recordedIn(t, dir); !slices.Equal(ids, []string{"now"}) {
		t.Errorf("before the end the log holds %q", ids)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func openDirectory(t *testing.T, dir string, required bool) *records {
	t.Helper()
	r, err := openRecords(t.Context(), options{configuration: configuration{Audit: auditOptions{Log: dir, Required: required}}}, nil, zap.NewNop(), func(err error) { t.Errorf("failed: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// recordedIn returns the ids of the decisions in a directory. Any fault of it fails the test.
func recordedIn(t *testing.T, dir string) (ids []string) {
	t.Helper()
	for e, err := range recorded.Events(dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == audit.TypeAdmission {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func decision(id string) *audit.Event {
	return &audit.Event{Type: audit.TypeAdmission, Stage: audit.StageResponseComplete, ID: id}
}

func TestTheNextProcessGoesOnWithTheDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	for _, id := range []string{"a", "b"} {
		r := openDirectory(t, dir, false)
		if _, err := r.Append(t.Context(), decision(id)); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if ids := recordedIn(t, dir); !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("the log holds %q", ids)
	}
	report, err := recorded.Reconcile(recorded.Events(dir))
	if err != nil || report.FaultCount != 0 || report.Sessions != 2 {
		t.Errorf("%v: %+v", err, report)
	}
}

// An operator makes room by moving the oldest segments away, while the webhook runs or not.
func TestTheOldestSegmentsMayBeMovedAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "audit")
	for _, id := range []string{"a", "b", "c"} {
		r := openDirectory(t, dir, true)
		files, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if id == "b" {
			if err := os.Rename(files[0], filepath.Join(t.TempDir(), "old")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Append(t.Context(), decision(id)); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if ids := recordedIn(t, dir); !slices.Equal(ids, []string{"b", "c"}) {
		t.Errorf("the log holds %q", ids)
	}
}

func TestARequiredRecordThatCannotBeWrittenIsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("nobody can remove a directory there that is in use")
	}
	dir := filepath.Join(t.TempDir(), "audit")
	r := openDirectory(t, dir, true)
	t.Cleanup(func() { _ = r.Close() })
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // the log looks for its directory once a second
		seq, err := r.Append(t.Context(), decision("lost"))
		switch {
		case errors.Is(err, segment.ErrUnavailable) && seq == 0:
			return
		case err != nil || time.Now().After(end):
			t.Fatalf("number %d, error %v", seq, err)
		}
	}
}

func TestAFileInPlaceOfTheDirectoryIsRefusedWithARemedy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	const before = "what an earlier version wrote\n"
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openRecords(t.Context(), options{configuration: configuration{Audit: auditOptions{Log: file}}}, nil, zap.NewNop(), nil)
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "move the file away") {
		t.Errorf("error %v", err)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != before {
		t.Errorf("the file holds %q, %v", text, err)
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
