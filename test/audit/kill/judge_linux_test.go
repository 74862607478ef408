package kill

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// judge holds the log against the journal of the host and what callers were told.
type judge struct {
	log     *reader
	journal *os.File
	rest    []byte // of the journal, without its newline yet

	began, ended map[string]int    // operations of the host, by path
	told         map[string]string // codes, by path
	intents      map[string]audit.Event
	ends         map[string]audit.Event
	open         map[string]bool // intents without an end, by path

	records, orphaned int
}

func newJudge(t *testing.T, p *place) *judge {
	t.Helper()
	journal, err := os.OpenFile(p.journal, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = journal.Close() })
	return &judge{
		log: &reader{dir: p.log, read: map[string]bool{}}, journal: journal, began: map[string]int{}, ended: map[string]int{}, told: map[string]string{},
		intents: map[string]audit.Event{}, ends: map[string]audit.Event{}, open: map[string]bool{},
	}
}

// readJournal takes what the host has added. Nobody writes to it meanwhile.
func (j *judge) readJournal(t *testing.T) {
	t.Helper()
	more, err := io.ReadAll(j.journal)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(append(j.rest, more...)) {
		if j.rest = nil; !bytes.HasSuffix(line, []byte("\n")) {
			j.rest = bytes.Clone(line)
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
	p := path(e)
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
	without := 0
	for p, n := range j.began {
		if _, ok := j.intents[p]; !ok {
			without++
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
	counted := 0
	for p, code := range j.told {
		e, ok := j.ends[p]
		switch {
		case !ok && code == "PermissionDenied" && j.began[p] == 0 && j.intents[p].Seq == 0:
			counted++ // beyond the budget, and a kill loses the number
		case !ok:
			t.Errorf("%s was answered with %s, and no record ends it", p, code)
		case e.Stage == audit.StageOrphaned:
			t.Errorf("%s was answered with %s, and its end is not in the log", p, code)
		case e.Outcome.Code != code:
			t.Errorf("%s was answered with %s, and recorded with %s", p, code, e.Outcome.Code)
		}
	}
	denied := 0
	for _, e := range j.ends {
		if e.Outcome.Result == audit.ResultDenied {
			denied++
		}
	}
	if counted > 0 && denied < 60 { // the budget of one caller and life
		t.Errorf("%d refusals have no record of their own, and only %d have one", counted, denied)
	}
	t.Logf("%d operations of the host, %d without an intent; %d intents, %d open; %d ends, %d of them orphaned; %d answers; %d records",
		len(j.began), without, len(j.intents), len(j.open), len(j.ends), j.orphaned, len(j.told), j.records)
}
