package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/hunt"
	"github.com/pipeguard/pipeguard/internal/audit/query"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
)

// outline is what is the same in each run: everything but ids and durations.
func outline(t *testing.T, dir string) (lines []string) {
	t.Helper()
	for _, r := range recordsOf(t, dir) {
		line := fmt.Sprintf("%d %s %s %s %s", r.Seq, r.Time.Format("15:04:05.000"), r.Type, r.Stage, query.Caller(&r.Event))
		if r.What != nil {
			line += fmt.Sprintf(" %s %s %s %v", r.What.Pipe, r.What.FullMethod, r.What.Params, r.What.Targets)
		}
		if d := r.Decision; d != nil {
			line += fmt.Sprintf(" %s %s %s %s %v", d.Effect, d.Rule, d.Reason, d.Mode, d.Policy)
		}
		if r.Outcome != nil {
			line += " " + r.Outcome.Result + " " + r.Outcome.Code
		}
		lines = append(lines, line)
	}
	return lines
}

func TestEachRunTellsTheSameStory(t *testing.T) {
	first, again := playOnce(t), filepath.Join(t.TempDir(), "again")
	if err := play(t.Context(), again, io.Discard); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(outline(t, first.evidence()), outline(t, places{again}.evidence())); diff != "" {
		t.Error(diff)
	}
}

// However slow the machine: the reviewer's guide shows how far each checkpoint reaches. Two are there twice, since what is signed at the end of a log
// is signed again as its last one.
func TestTheStoryIsSignedWhereItBeginsAndEnds(t *testing.T) {
	file, err := os.Open(filepath.Join(playOnce(t).evidence(), evidence.CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // only read
	var sizes []uint64
	for note, err := range evidence.Notes(file) {
		if err != nil {
			t.Fatal(err)
		}
		head, err := evidence.Inspect(note.Raw)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, head.Size)
	}
	if diff := cmp.Diff([]uint64{1, 35, 35, 36, 85, 107, 107}, sizes); diff != "" {
		t.Error(diff)
	}
}

func TestTheLogTellsWhatHappened(t *testing.T) {
	s := playOnce(t)
	const runner = "pod=shop/report-runner-6c9f7"
	for name, c := range map[string]struct {
		terms []string
		want  int
	}{
		"two workloads are mounted":                        {[]string{"method=MountVolume", "result=ok", "sa=kube-system/csi-azuredisk-node-sa"}, 2},
		"paths outside its directory are denied to a pod":  {[]string{runner, "decision=deny", "method=PathExists"}, 14},
		"it may not list volumes":                          {[]string{runner, "decision=deny", "method=ListVolumesOnDisk"}, 1},
		"the list lets it near services, and a rule stops": {[]string{runner, "rule=PN001", "method=StopService", "result=denied"}, 1},
		"the raw disk is not partitioned":                  {[]string{runner, "decision=deny", "method=PartitionDisk"}, 1},
		"an old name leads no further":                     {[]string{runner, "decision=deny", "version=v1alpha1", "method=CreateSymlink"}, 1},
		"a method that there is not is recorded":           {[]string{runner, "result=rejected", "code=Unimplemented"}, 1},
		"so are connections on which nothing is admitted":  {[]string{runner, "type=connection", "result=idle"}, 9},
		"a denial is carried out in LogOnly":               {[]string{runner, "decision=logonly", "stage=end", "result=ok"}, 1},
		"a process of the node calls":                      {[]string{"host=yes", "type=request", "stage=end", "result=ok"}, 1},
		"a token is stale":                                 {[]string{"token=stale", "stage=end", "result=ok"}, 1},
		"an operation has no end that is known":            {[]string{"stage=orphan", "method=ResizeVolume", "result=orphaned"}, 1},
		"for a moment a link may be made":                  {[]string{runner, "method=CreateSymlink", "result=ok", "rule=reports"}, 1},
		"before and after it may not":                      {[]string{runner, "method=CreateSymlink", "version=v1", "result=denied"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := recordsOf(t, s.evidence(), c.terms...); len(got) != c.want {
				t.Errorf("%d records fit %q, want %d", len(got), c.terms, c.want)
			}
		})
	}
}

func TestTheChangedListHasItsOwnRevision(t *testing.T) {
	let := recordsOf(t, playOnce(t).evidence(), "method=CreateSymlink", "stage=end")
	var revisions []string
	for _, r := range let {
		revisions = append(revisions, string(r.Decision.Effect)+" "+r.Decision.Policy.Revision)
	}
	if len(revisions) != 4 || revisions[0] != revisions[1] || revisions[1] != revisions[3] || !strings.HasPrefix(revisions[2], "allow ") {
		t.Fatalf("decisions %q", revisions)
	}
	if strings.TrimPrefix(revisions[2], "allow") == strings.TrimPrefix(revisions[1], "deny") {
		t.Error("the list that let it in is not told from the other")
	}
}

func TestEveryIntentHasItsEnd(t *testing.T) {
	report, err := recorded.Reconcile(recorded.Events(playOnce(t).evidence()))
	if err != nil || len(report.Faults) > 0 || len(report.Open) > 0 {
		t.Errorf("%v, faults %v, open %v", err, report.Faults, report.Open)
	}
}

func TestTheRulesFindTheIncident(t *testing.T) {
	rules, err := hunt.Load(os.DirFS("../../deploy/siem/sigma"))
	if err != nil {
		t.Fatal(err)
	}
	h := hunt.New(rules)
	var found []string
	for _, r := range recordsOf(t, playOnce(t).evidence()) {
		findings, err := h.Ask(hunt.ServiceAudit, r.Raw, r.Time)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range findings {
			if f.Rule.Level != "informational" {
				found = append(found, f.Rule.Title)
			}
		}
	}
	want := []string{
		"A call came with a token that proves nothing now", "A call was denied by the request policy", "A denied call was carried out", "A process of the node called a guarded pipe",
		"An operation was let through and its end is not known", "Many calls of one caller were denied",
	}
	slices.Sort(found)
	if diff := cmp.Diff(want, slices.Compact(found)); diff != "" {
		t.Error(diff)
	}
}

func TestNothingIsWrittenOver(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"a directory that holds something": {dir}, "a file": {file}, "nothing": {}, "an empty name": {""}, "two directories": {dir, dir},
		"a flag": {"--help"}, "half a node": {nodeWord, "morning"}, "an act that there is not": {nodeWord, "evening", dir, "http://127.0.0.1:1", "k"},
	} {
		if err := run(context.Background(), args, io.Discard); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}
