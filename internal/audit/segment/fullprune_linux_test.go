package segment_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
)

// A call that did not end kept its log from removing anything until the disk was full. Nothing was removed after its end either, for want of room for the
// file that a removal needs, until the process was started again.
func TestALogThatFilledItsDiskGoesOnWhenItsBeginningMayGo(t *testing.T) {
	dir := smallDisk(t, 4<<20)
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "log")
	var tree *evidence.Log
	const segmentBytes = 256 << 10
	w, err := segment.Open(t.Context(), log, segment.Options{
		SegmentBytes: segmentBytes, KeepBytes: 4 * segmentBytes, Admitted: 4, NoSync: true,
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			tree, err = evidence.Open(context.Background(), evidence.Options{Dir: log, Keys: []*evidence.Key{key}, Prunes: true})
			return tree, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	write := func(id string, stage audit.Stage, intent uint64) (uint64, error) {
		e := &audit.Event{Type: audit.TypeRequest, Stage: stage, ID: id, IntentSeq: intent, What: &audit.What{Pipe: strings.Repeat("x", 2000)}}
		if stage == audit.StageResponseComplete {
			e.Outcome = &audit.Outcome{Result: audit.ResultOK}
		}
		return w.Append(t.Context(), e)
	}
	call := func(id string) error {
		seq, err := write(id, audit.StageRequestReceived, 0)
		if err == nil {
			_, err = write(id, audit.StageResponseComplete, seq)
		}
		return err
	}
	held, err := write("held", audit.StageRequestReceived, 0)
	if err != nil {
		t.Fatal(err)
	}
	isFull := false
	for i := 0; i < 10_000 && !isFull; i++ {
		if err := call(fmt.Sprint(i)); err != nil {
			if !errors.Is(err, segment.ErrFull) {
				t.Fatal(err)
			}
			isFull = true
		}
	}
	if !isFull || w.Stats().Pruned != 0 {
		t.Fatalf("full: %t, %+v", isFull, w.Stats())
	}
	time.Sleep(3 * time.Second) // checkpoints are made meanwhile
	if _, err := write("held", audit.StageResponseComplete, held); err != nil {
		t.Fatalf("the end of a call on a full disk: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if err = call("after"); err == nil && w.Stats().Pruned > 0 || time.Now().After(deadline) {
			break
		}
	}
	if s := w.Stats(); err != nil || s.Pruned == 0 {
		t.Errorf("a minute after its end: %v, %+v", err, s)
	}
	if err := errors.Join(w.Close(), tree.Close(t.Context())); err != nil {
		t.Error(err)
	}
	keys, err := evidence.ParseKeys(key.String())
	if err != nil {
		t.Fatal(err)
	}
	r, err := evidence.Verify(t.Context(), evidence.VerifyOptions{Dir: log, Keys: keys, Outside: []string{evidencetest.Elsewhere(t, log, key)}})
	if err != nil || r.Fault != nil || r.OwnCovered != r.LastSeq || len(r.Unused) != 0 {
		t.Errorf("%s %v %v, unused %q, %v", r.Verdict, r.Fault, r.Incomplete, r.Unused, err)
	}
}
