package segment

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// request is a record of the request with this id.
func request(id string, stage audit.Stage, intent uint64) *audit.Event {
	e := &audit.Event{Type: audit.TypeRequest, Stage: stage, ID: id, IntentSeq: intent}
	if stage != audit.StageRequestReceived {
		e.Outcome = &audit.Outcome{Result: audit.ResultOK, Code: "OK"}
	}
	return e
}

func open(t testing.TB, disk Disk, o Options) *Writer {
	t.Helper()
	w, err := OpenDisk(t.Context(), disk, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func shut(t testing.TB, w *Writer) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func mustAppend(t testing.TB, w *Writer, e *audit.Event) uint64 {
	t.Helper()
	seq, err := w.Append(context.Background(), e)
	if err != nil {
		t.Fatalf("append %s of %s: %v", e.Stage, e.ID, err)
	}
	return seq
}

// records reads a log by its rules alone: openings say how much of the segment before counts, numbers have no gaps, each line holds
// the hash of the one before. It shares no code with recovery beyond the order of names.
func records(t testing.TB, disk Disk) []audit.Event {
	t.Helper()
	s, err := survey(disk, Signed{})
	parts := s.parts
	if err != nil {
		t.Fatal(err)
	}
	if len(parts) > 0 { // a torn end is no record yet
		f, err := read(disk, Signed{})
		if err != nil {
			t.Fatal(err)
		}
		parts = f.parts
	}
	var events []audit.Event
	var leaf [32]byte
	for i := range parts {
		first := true
		err := parts[i].lines(disk, func(line []byte, _ int64) bool {
			e, err := audit.Parse(line)
			if err != nil {
				t.Fatalf("%s: %v: %s", parts[i].name, err, line)
			}
			if n := len(events); n > 0 && e.Seq != events[n-1].Seq+1 {
				t.Fatalf("%s: number %d after %d", parts[i].name, e.Seq, events[n-1].Seq)
			}
			if e.Prev != encodeLeaf(leaf) && len(events) > 0 {
				t.Fatalf("%s: record %d does not hold the hash of the one before", parts[i].name, e.Seq)
			}
			if opens := e.Stage == audit.StageLogOpen; opens != first {
				t.Fatalf("%s: record %d is %s", parts[i].name, e.Seq, e.Stage)
			}
			if first && (e.Seq != parts[i].first || len(line) <= 1024 || !strings.Contains(string(line[:160]), e.Session)) {
				t.Fatalf("%s: a first record of %d bytes with number %d: %s", parts[i].name, len(line), e.Seq, line)
			}
			first, leaf = false, Leaf(line)
			events = append(events, e)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// whileFree calls do while no goroutine owns the log, and lets none take it.
func whileFree(w *Writer, do func(*log)) {
	for {
		w.turns.mu.Lock()
		if !w.turns.owned {
			defer w.turns.mu.Unlock()
			do(w.log)
			return
		}
		w.turns.mu.Unlock()
		runtime.Gosched()
	}
}

// current is the name of the segment that is being written.
func current(w *Writer) (name string) {
	whileFree(w, func(l *log) { name = l.at.name })
	return name
}

// ledger is what a caller was told.
type ledger struct {
	acknowledged map[string]uint64 // id/stage -> number
	failed       map[string]bool
	pad          int // how much each record is longer
}

func newLedger() *ledger {
	return &ledger{acknowledged: map[string]uint64{}, failed: map[string]bool{}}
}

func (l *ledger) append(t testing.TB, w *Writer, e *audit.Event) error {
	t.Helper()
	seq, err := w.Append(context.Background(), l.padded(e))
	key := e.ID + "/" + string(e.Stage)
	switch {
	case err == nil && seq == 0:
		t.Fatalf("%s was acknowledged without a number", key)
	case err == nil:
		l.acknowledged[key] = seq
	case !errors.Is(err, ErrUnavailable):
		t.Fatalf("%s: %v is no ErrUnavailable", key, err)
	default:
		l.failed[key] = true
	}
	return err
}

func (l *ledger) padded(e *audit.Event) *audit.Event {
	if l.pad > 0 {
		e.What = &audit.What{FullMethod: strings.Repeat("x", l.pad)}
	}
	return e
}

// call is one operation: its intent, and its end if the intent was acknowledged, repeated until it is taken.
func (l *ledger) call(t testing.TB, w *Writer, id string) {
	t.Helper()
	if l.append(t, w, request(id, audit.StageRequestReceived, 0)) != nil {
		return
	}
	end := l.padded(request(id, audit.StageResponseComplete, l.acknowledged[id+"/RequestReceived"]))
	for range 3 {
		seq, err := w.Append(context.Background(), end)
		if err == nil {
			l.acknowledged[id+"/ResponseComplete"] = seq
			return
		}
		end.Again = end.Again || seq != 0
	}
}

// judge holds the log against the ledger.
func (l *ledger) judge(t testing.TB, events []audit.Event) {
	t.Helper()
	type copies struct{ all, first int }
	seen, at := map[string]*copies{}, map[string]uint64{}
	ends, intents := map[string]int{}, map[string]uint64{}
	for _, e := range events {
		if e.Type != audit.TypeRequest {
			continue
		}
		key := e.ID + "/" + string(e.Stage)
		if seen[key] == nil {
			seen[key] = &copies{}
		}
		if seen[key].all++; !e.Again {
			seen[key].first++
		}
		at[key] = e.Seq
		if e.Stage == audit.StageRequestReceived {
			intents[e.ID] = e.Seq
			continue
		}
		if ends[e.ID]++; e.IntentSeq != 0 && intents[e.ID] != e.IntentSeq {
			t.Errorf("record %d ends intent %d, and that of %s is %d", e.Seq, e.IntentSeq, e.ID, intents[e.ID])
		}
	}
	for key, seq := range l.acknowledged {
		if seen[key] == nil {
			t.Errorf("%s was acknowledged as record %d and is lost", key, seq)
		} else if at[key] != seq && seen[key].all == 1 {
			t.Errorf("%s was acknowledged as record %d and is record %d", key, seq, at[key])
		}
	}
	for key, c := range seen {
		if c.first > 1 || c.all > 1 && c.first == c.all {
			t.Errorf("%s stands there %d times, %d of them unmarked", key, c.all, c.first)
		}
	}
	for id := range intents {
		if ends[id] > 1 {
			t.Errorf("%s has %d ends", id, ends[id])
		}
	}
}

// settled fails if an intent has no end.
func settled(t testing.TB, events []audit.Event) {
	t.Helper()
	open := map[string]uint64{}
	for _, e := range events {
		if e.Type != audit.TypeRequest {
			continue
		}
		if delete(open, e.ID); e.Stage == audit.StageRequestReceived {
			open[e.ID] = e.Seq
		}
	}
	for id, seq := range open {
		t.Errorf("intent %d of %s has no end", seq, id)
	}
}

// copies fails if a record stands twice on the disk without a mark, the parts that are not of the log included: a shipper sees those too.
func copies(t testing.TB, disk *memory) {
	t.Helper()
	unmarked := map[string]int{}
	for name, f := range disk.files {
		if _, ok := ParseName(name); !ok {
			continue
		}
		err := Scan(bytes.NewReader(f.data), func(line []byte, _ int64) bool {
			if e, err := audit.Parse(line); err == nil && e.Type == audit.TypeRequest && !e.Again && e.Stage != audit.StageOrphaned {
				key := e.ID + "/" + string(e.Stage)
				if unmarked[key]++; unmarked[key] > 1 {
					t.Errorf("%s stands on the disk twice without a mark", key)
				}
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
	}
}
