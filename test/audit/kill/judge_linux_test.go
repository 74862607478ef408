package kill

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// judge holds the log against the journal of the host and what callers were told.
type judge struct {
	log     *reader
	journal *os.File

	began, ended map[string]int    // operations of the host, by path
	told         map[string]string // codes, by path
	intents      map[string]audit.Event
	ends         map[string]audit.Event
	open         map[string]bool // intents without an end, by path

	runs   map[string]int // lives by the sessions that they wrote
	summed map[string]int // refusals that summaries count, by session
	whole  map[int]bool   // lives that ended in order, when all callers had their answers

	records, orphaned int
}

func newJudge(t *testing.T, p *place) *judge {
	t.Helper()
	journal, err := os.OpenFile(p.journal, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	return &judge{
		log: &reader{dir: p.log, read: map[string]bool{}}, journal: journal, began: map[string]int{}, ended: map[string]int{}, told: map[string]string{},
		intents: map[string]audit.Event{}, ends: map[string]audit.Event{}, open: map[string]bool{},
		runs: map[string]int{}, summed: map[string]int{}, whole: map[int]bool{},
	}
}

// readJournal takes what the host has added. Nobody writes to it meanwhile. A line that a kill cut short is of an operation that was not begun or had
// not ended; it is removed, or the next life would write behind it.
func (j *judge) readJournal(t *testing.T) {
	t.Helper()
	more, err := io.ReadAll(j.journal)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(more) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			end, err := j.journal.Seek(-int64(len(line)), io.SeekCurrent)
			if err = errors.Join(err, j.journal.Truncate(end)); err != nil {
				t.Fatal(err)
			}
			break
		}
		var l fakehost.Line
		if err := json.Unmarshal(line, &l); err != nil || len(l.Args) == 0 {
			t.Fatalf("journal: %q: %v", line, err)
		}
		if l.Ended {
			j.ended[l.Args[0]]++
		} else {
			j.began[l.Args[0]]++
		}
	}
}

// readLog takes the segments that were closed since the last time. The newest one, which the process that runs has begun, must
// end all that those left open.
func (j *judge) readLog(t *testing.T) {
	t.Helper()
	old, newest := j.log.closed(t)
	for _, e := range old {
		j.records++
		if e.Type == audit.TypeRequest {
			j.take(t, e)
		}
	}
	open := map[string]bool{}
	for p := range j.open {
		open[p] = true
	}
	for _, e := range newest {
		if e.Stage == audit.StageOrphaned {
			delete(open, path(e))
		}
	}
	for p := range open {
		t.Errorf("when the pipes were open, intent %d about %s had no end", j.intents[p].Seq, p)
	}
}

func (j *judge) take(t *testing.T, e audit.Event) {
	t.Helper()
	if e.Stage == audit.StageSummary {
		j.summed[e.Session] += int(e.Count()) //nolint:gosec // small
		return
	}
	p := path(e)
	if e.Stage != audit.StageOrphaned { // which a later life writes
		j.runs[e.Session] = runOf(t, p)
	}
	if e.Stage == audit.StageRequestReceived {
		if before, twice := j.intents[p]; twice {
			t.Errorf("%s has intents %d and %d", p, before.Seq, e.Seq)
		}
		j.intents[p], j.open[p] = e, true
		return
	}
	if before, twice := j.ends[p]; twice {
		t.Errorf("%s has ends %d and %d", p, before.Seq, e.Seq)
	}
	j.ends[p] = e
	delete(j.open, p)
	if e.Stage == audit.StageOrphaned {
		j.orphaned++
	}
	intent, admitted := j.intents[p]
	if e.IntentSeq != intent.Seq || e.ID == "" || admitted && e.ID != intent.ID {
		t.Errorf("record %d (id %s) ends intent %d of %s, which is %d (id %s)", e.Seq, e.ID, e.IntentSeq, p, intent.Seq, intent.ID)
	}
}

// verdict is the last word, when everything was read.
func (j *judge) verdict(t *testing.T) {
	t.Helper()
	undeclared := 0
	for p, n := range j.began {
		if _, ok := j.intents[p]; !ok {
			undeclared++
			t.Errorf("%s was done and has no intent", p)
		}
		if n > 1 || j.ended[p] > n {
			t.Errorf("%s was begun %d times and ended %d times", p, n, j.ended[p])
		}
	}
	for p := range j.open {
		t.Errorf("intent %d about %s has no end", j.intents[p].Seq, p)
	}
	for p, e := range j.ends {
		if e.Outcome.Result == audit.ResultOK && j.ended[p] == 0 {
			t.Errorf("record %d says that %s was done, and the host has not done it", e.Seq, p)
		}
		if r := e.Outcome.Result; (r == audit.ResultDenied || r == audit.ResultRejected) && j.began[p] > 0 {
			t.Errorf("record %d says that %s was refused, and the host has done it", e.Seq, p)
		}
	}
	without, recorded := map[int]int{}, map[int]int{} // refusals, by life
	for p, code := range j.told {
		e, ok := j.ends[p]
		switch {
		case !ok && code == "PermissionDenied" && j.began[p] == 0 && j.intents[p].Seq == 0:
			without[runOf(t, p)]++
		case !ok:
			t.Errorf("%s was answered with %s, and no record ends it", p, code)
		case e.Stage == audit.StageOrphaned:
			t.Errorf("%s was answered with %s, and its end is not in the log", p, code)
		case e.Outcome.Code != code:
			t.Errorf("%s was answered with %s, and recorded with %s", p, code, e.Outcome.Code)
		}
	}
	for p, e := range j.ends {
		if e.Outcome.Result == audit.ResultDenied {
			recorded[runOf(t, p)]++
		}
	}
	j.refusals(t, without, recorded)
	t.Logf("%d operations of the host, %d without an intent; %d intents, %d open; %d ends, %d of them orphaned; %d answers; %d records",
		len(j.began), undeclared, len(j.intents), len(j.open), len(j.ends), j.orphaned, len(j.told), j.records)
}

// budget is how many refusals of one caller have records of their own before others are counted.
const budget = 60

// refusals holds the refused calls of each life that have no record of their own against those that its summaries count. A summary is written a minute
// after the first refusal that it counts, and at a stop: a kill loses what was counted since the last one, which in lives as short as these is
// all, and nothing else. A caller whose answer the kill cut off may be in a record or a summary besides.
func (j *judge) refusals(t *testing.T, without, recorded map[int]int) {
	t.Helper()
	summed := map[int]int{}
	for session, n := range j.summed {
		run, ok := j.runs[session]
		if !ok {
			t.Errorf("session %s counts %d refusals, and has no record of a call", session, n)
		}
		summed[run] += n
	}
	for run := range j.whole {
		if without[run] != summed[run] || summed[run] == 0 {
			t.Errorf("of a life that ended in order %d refusals have no record of their own, and its summaries count %d", without[run], summed[run])
		}
	}
	for run, n := range without {
		if n > 0 && recorded[run] < budget {
			t.Errorf("in life %d %d refusals have no record of their own, and only %d have one", run, n, recorded[run])
		}
	}
	for run, n := range summed {
		if n > without[run]+callers {
			t.Errorf("the summaries of life %d count %d refusals, and %d had no record of their own", run, n, without[run])
		}
	}
}

// runOf is the life in which a call was about a path.
func runOf(t *testing.T, path string) (run int) {
	t.Helper()
	number, _, _ := strings.Cut(strings.TrimPrefix(path, root), "-")
	run, err := strconv.Atoi(number)
	if err != nil {
		t.Fatalf("%s is about %q, which no caller named", number, path)
	}
	return run
}
