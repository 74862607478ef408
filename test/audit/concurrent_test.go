package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

// A log that is written, signed, rotated and pruned is never called tampered with by who verifies it meanwhile. PIPEGUARD_VERIFICATIONS sets
// how many look.
func TestVerifyingALogThatIsBeingWrittenRaisesNoFalseAlarm(t *testing.T) {
	count := 60
	if text := os.Getenv("PIPEGUARD_VERIFICATIONS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		count = n
	}
	dir := filepath.Join(t.TempDir(), "log")
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := evidence.ParseKeys(key.LogKey())
	if err != nil {
		t.Fatal(err)
	}
	var kept *evidence.Log
	w, err := segment.Open(t.Context(), dir, segment.Options{
		SegmentBytes: 64 << 10, KeepBytes: 1 << 20, NoSync: true, OnFault: func(err error) { t.Error(err) },
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			kept, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
			return kept, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var writers sync.WaitGroup
	work := make(chan int, 16) // each verification gives the writers some: the log must not outgrow those who read it
	for range 4 {
		writers.Go(func() {
			for from := range work {
				for i := range 50 {
					if _, err := w.Append(ctx, event(from+i)); err != nil {
						t.Error(err)
					}
				}
				if from%12_000 != 0 { // a verification looks at every checkpoint
					continue
				}
				if err := kept.Checkpoint(ctx); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[evidence.Verdict]int{}
	var last, pruned uint64
	for i := range count {
		for range 4 {
			select {
			case work <- i * 1000:
			default: // they have enough
			}
		}
		r, err := evidence.Verify(ctx, evidence.VerifyOptions{Dir: dir, Keys: keys})
		switch {
		case err != nil && last == 0: // it has only just begun
		case err != nil:
			t.Error(err)
		case r.Verdict != evidence.VerdictIncomplete:
			t.Errorf("%s: %v", r.Verdict, r.Fault)
		case r.LastSeq < last:
			t.Errorf("the log has %d records, and had %d", r.LastSeq, last)
		default:
			last, pruned = r.LastSeq, r.PrunedUntil
		}
		seen[r.Verdict]++
	}
	close(work)
	writers.Wait()
	if err := errors.Join(w.Close(), kept.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: dir, Keys: keys, Outside: []string{evidencetest.Elsewhere(t, dir, key)}, AllowPruned: true})
	if err != nil || r.Verdict != evidence.VerdictOK {
		t.Errorf("in the end: %v %s %v %q", err, r.Verdict, r.Fault, r.Incomplete)
	}
	t.Logf("%v while it grew to %d records, of which %d were pruned", seen, last, pruned)
}
