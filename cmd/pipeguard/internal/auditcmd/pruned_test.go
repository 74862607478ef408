package auditcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// session writes to a log of small segments with a process of its own, which keeps so many bytes, and tells of no other fault than one.
func session(t *testing.T, dir string, key *evidence.Key, keep int64, fault string, events ...*audit.Event) {
	t.Helper()
	last, err := evidence.LastSigned(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var kept *evidence.Log
	w, err := segment.Open(t.Context(), dir, segment.Options{
		SegmentBytes: 20_000, KeepBytes: keep, Covered: last.Size, OnFault: func(err error) {
			if fault == "" || !strings.Contains(err.Error(), fault) {
				t.Error(err)
			}
		},
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			var err error
			kept, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
			return kept, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]uint64{}
	for _, e := range events {
		if e.Stage != audit.StageRequestReceived {
			e.IntentSeq = numbers[e.ID]
		}
		seq, err := w.Append(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		numbers[e.ID] = seq
	}
	for deadline := time.Now().Add(time.Minute); keep > 0 && w.Stats().Pruned == 0; time.Sleep(10 * time.Millisecond) { // removal is prepared beside
		if time.Now().After(deadline) {
			t.Fatal("nothing was removed")
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := kept.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An operation whose intent went with the oldest segments is no fault, if the log says so itself.
func TestCheckRecognisesPrunedRecords(t *testing.T) {
	dir, private := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "audit.key")
	if made := execute(t, "", "keys", "generate", private, "--for", "log", "--name", "node-1"); made.Code != 0 {
		t.Fatalf("%+v", made)
	}
	key, err := evidence.ReadKey(private)
	if err != nil {
		t.Fatal(err)
	}
	var events []*audit.Event
	event := func(id string, stage audit.Stage) {
		e := &audit.Event{Type: audit.TypeRequest, Stage: stage, ID: id, What: &audit.What{Method: strings.Repeat("x", 300)}}
		if stage != audit.StageRequestReceived {
			e.Outcome = &audit.Outcome{Result: audit.ResultOK, Code: "OK"}
		}
		events = append(events, e)
	}
	const ahead = 30 // operations are so many records long, so that each segment ends some of the one before
	for i := range 300 {
		event(fmt.Sprint(i), audit.StageRequestReceived)
		if i >= ahead {
			event(fmt.Sprint(i-ahead), audit.StageResponseComplete)
		}
	}
	for i := range ahead {
		event(fmt.Sprint(300-ahead+i), audit.StageResponseComplete)
	}
	session(t, dir, key, 0, "", events...)
	if got := evidenceCommand(t, "check", dir); got.Code != 0 {
		t.Fatalf("before: %+v", got)
	}
	session(t, dir, key, 60_000, "")
	segments := func() (names []string) {
		names, err := filepath.Glob(filepath.Join(dir, "audit-*"))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		return names
	}
	for name, args := range map[string][]string{
		"the directory": {dir}, "with keys": {dir, "--keys", private + ".pub", "--allow-pruned"}, "its segments": segments(),
	} {
		got := evidenceCommand(t, append([]string{"check"}, args...)...)
		if got.Code != 0 || !strings.Contains(got.Out, " ends have an intent that was removed") || !strings.Contains(got.Out, "consistent:") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := evidenceCommand(t, "check", dir, "-o", "json"); strings.Contains(got.Out, `"pruned": 0`) {
		t.Errorf("in JSON: %+v", got)
	}
	// What the log did not remove itself is missing.
	names := segments()
	if err := os.Remove(names[0]); err != nil {
		t.Fatal(err)
	}
	if got := evidenceCommand(t, "check", dir); got.Code != cli.ExitIncomplete || !strings.Contains(got.Out, "ends an operation that has no intent") || strings.Contains(got.Out, "that was removed") {
		t.Errorf("a segment was taken away: %+v", got)
	}
}
