package segment

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// crashed is a log whose process ended without a word: two calls that are over, two that are open, two denials.
func crashed(t *testing.T) (disk *memory, name string, l *ledger) {
	t.Helper()
	disk, l = newMemory(), newLedger()
	l.pad = 5
	w := open(t, disk, Options{})
	name = current(w)
	for _, id := range []string{"a", "b"} {
		l.call(t, w, id)
		_ = l.append(t, w, request("open-"+id, audit.StageRequestReceived, 0))
		_ = l.append(t, w, request("denied-"+id, audit.StageResponseComplete, 0))
	}
	copied := disk.crash(0)
	shut(t, w)
	return copied, name, l
}

// with returns a copy of a disk with other contents in one file.
func with(disk *memory, name string, data []byte) *memory {
	c := disk.crash(1 << 30)
	c.files[name].data, c.files[name].durable = data, len(data)
	return c
}

func TestACrashAtAnyByteLosesNoWholeRecordAndLeavesNoOpenIntent(t *testing.T) {
	disk, name, l := crashed(t)
	whole := disk.files[name].data
	stride := map[string]int{"cut short": sampled(5), "ends with zeros": sampled(17), "a hole in the middle": sampled(17)}
	for kind, tail := range map[string]func(cut int) []byte{
		"cut short":       func(cut int) []byte { return whole[:cut] },
		"ends with zeros": func(cut int) []byte { return append(slices.Clone(whole[:cut]), make([]byte, 5000)...) },
		"a hole in the middle": func(cut int) []byte { // a later page of the batch arrived, an earlier one did not
			c := slices.Clone(whole)
			clear(c[cut:min(len(c), cut+300)])
			return c
		},
	} {
		t.Run(kind, func(t *testing.T) {
			for cut := 0; cut <= len(whole); cut += stride[kind] {
				here, there := with(disk, name, tail(cut)), newLedger()
				kept := bytes.Count(whole[:cut], []byte("\n"))
				for key, seq := range l.acknowledged {
					if seq <= uint64(kept) {
						there.acknowledged[key] = seq
					}
				}
				w := open(t, here, Options{})
				opening := current(w)
				w.log.mu.Lock()
				if w.log.stats.Open != 0 {
					t.Errorf("cut at %d: %d operations under way", cut, w.log.stats.Open)
				}
				w.log.mu.Unlock()
				there.call(t, w, "next")
				shut(t, w)
				events := records(t, here)
				there.judge(t, events)
				settled(t, events)
				at := slices.IndexFunc(events, func(e audit.Event) bool { return e.Seq > uint64(kept) && e.Stage == audit.StageLogOpen })
				if at != kept && (kept != 0 || at != 0) {
					t.Errorf("cut at %d: the new segment begins with record %d behind %d whole ones", cut, at+1, kept)
				} else if g := events[at].Log; g.Fault != "" || kept > 0 && (g.PreviousSegment != name || int(g.PreviousBytes)+g.TornBytes != len(tail(cut))) {
					t.Errorf("cut at %d: %+v", cut, g)
				} else if kept == 0 && !slices.Contains(g.Void, name) {
					t.Errorf("cut at %d: a segment without a record is not named: %v", cut, g.Void)
				}
				if !bytes.Equal(here.files[name].data, tail(cut)) {
					t.Errorf("cut at %d: the old segment was changed", cut)
				}
				if opening == name {
					t.Error("a segment was opened again")
				}
				if cut%16 != 0 && !t.Failed() {
					continue
				}
				before := len(events)
				shut(t, open(t, here, Options{}))
				if events = records(t, here); len(events) != before+2 { // opened and closed, nothing to end
					t.Errorf("cut at %d: %d records after another start, want %d", cut, len(events), before+2)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

func TestOpenIntentsAreEndedBeforeAnythingElseAndSayWhatTheyWereAbout(t *testing.T) {
	disk, _, _ := crashed(t)
	w := open(t, disk, Options{})
	defer shut(t, w)
	events := records(t, disk)
	i := slices.IndexFunc(events, func(e audit.Event) bool { return e.Stage == audit.StageLogOpen && e.Seq > 1 })
	if i < 0 || len(events) != i+3 || events[i].Log.Orphaned != 2 || events[i].Log.OldestOpen == 0 {
		t.Fatalf("opening %d of %d: %+v", i, len(events), events[i].Log)
	}
	for n, e := range events[i+1:] {
		if e.Stage != audit.StageOrphaned || e.ID != "open-"+string("ab"[n]) || e.Outcome == nil || e.Outcome.Result != audit.ResultOrphaned || e.What == nil || e.IntentSeq == 0 {
			t.Errorf("record %+v", e)
		}
	}
}

func TestAnIntentOfAnEarlierSegmentIsFound(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	w := open(t, disk, small())
	seq := mustAppend(t, w, request("long", audit.StageRequestReceived, 0))
	for i := range 80 {
		l.call(t, w, fmt.Sprint(i))
	}
	if n := w.Stats().Segments; n < 3 {
		t.Fatalf("%d segments", n)
	}
	after := disk.crash(0)
	shut(t, w)
	shut(t, open(t, after, small()))
	events := records(t, after)
	settled(t, events)
	if i := slices.IndexFunc(events, func(e audit.Event) bool { return e.Stage == audit.StageOrphaned }); i < 0 || events[i].IntentSeq != seq {
		t.Errorf("the intent has no end of its own")
	}
}

func TestAnOpeningThatCannotBeReadHidesNoOpenIntent(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	w := open(t, disk, small())
	mustAppend(t, w, request("long", audit.StageRequestReceived, 0))
	for i := range 80 {
		l.call(t, w, fmt.Sprint(i))
	}
	name, last := current(w), w.Stats().Seq
	after := disk.crash(0)
	shut(t, w)
	text := slices.Clone(after.files[name].data)
	text[bytes.Index(text, []byte(`"log":{`))] = 'x'
	here := with(after, name, text)
	shut(t, open(t, here, Options{Covered: last}))
	ended := false
	for _, file := range here.files {
		ended = ended || bytes.Contains(file.data, []byte(`"stage":"Orphaned"`)) && bytes.Contains(file.data, []byte(`"id":"long"`))
	}
	if !ended {
		t.Error("the intent has no end")
	}
}

func TestDamageThatNoCrashMakesIsNamed(t *testing.T) {
	disk, name, _ := crashed(t)
	whole := disk.files[name].data
	lines := bytes.SplitAfter(whole, []byte("\n"))
	flipped := slices.Clone(whole)
	flipped[len(lines[0])+len(lines[1])+40] ^= 1
	many := slices.Clone(flipped)
	for len(many) < 2*maxBatch {
		many = append(many, lines[2]...)
	}
	for _, tt := range []struct {
		name    string
		data    []byte
		covered uint64
	}{
		{"a record stands there again before others", slices.Concat(bytes.Join(lines[:4], nil), lines[2], lines[4]), 0}, {"a record is missing", bytes.Join(append(lines[:3:3], lines[4:]...), nil), 0},
		{"a checkpoint covers it", flipped, 9}, {"more than a batch follows it", many, 0},
		{"records that a checkpoint covers are cut off", bytes.Join(lines[:4], nil), 9}, {"all of them are", nil, 9},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here := with(disk, name, tt.data)
			w := open(t, here, Options{Covered: tt.covered})
			shut(t, w)
			s, err := survey(here, Signed{})
			if err != nil {
				t.Fatal(err)
			}
			parts := s.parts
			g := parts[len(parts)-1].opening.Log
			if g == nil || g.Fault == "" {
				t.Fatalf("no fault is named: %+v", g)
			}
			if first := parts[len(parts)-1].first; first <= tt.covered {
				t.Errorf("number %d was given again, covered are %d", first, tt.covered)
			}
			if tt.data != nil && int(g.PreviousBytes)+g.TornBytes != len(tt.data) {
				t.Errorf("%d of %d bytes are taken to be of the log, and %d are declared", g.PreviousBytes, len(tt.data), g.TornBytes)
			}
		})
	}
}

func TestNamesAndHeadsThatAreNotOursAreRefused(t *testing.T) {
	good := Name(7)
	if first, ok := ParseName(good); !ok || first != 7 {
		t.Errorf("%s: %d, %v", good, first, ok)
	}
	for _, name := range []string{"", "lock", "checkpoints", good + "~", "x" + good, good[:len(good)-1], "audit-7-" + good[27:], Name(0), strings.ToUpper(good),
		"audit-99999999999999999999" + good[26:]} {
		if _, ok := ParseName(name); ok {
			t.Errorf("%q was taken for a segment", name)
		}
	}
	disk, name, _ := crashed(t)
	line := bytes.SplitAfter(disk.files[name].data, []byte("\n"))[1]
	line = line[:len(line)-1]
	if h, ok := parseHead(line); !ok || h.seq != 2 || h.id != "a" || h.stage != "RequestReceived" {
		t.Errorf("%+v %v of %s", h, ok, line)
	}
	for _, bad := range []string{"", "{}", "null", `{"v":2` + string(line[6:]), string(line) + " ", string(line[:len(line)-1]), strings.Replace(string(line), `"seq":2`, `"seq":0`, 1),
		strings.Replace(string(line), `"seq":2`, `"seq":99999999999999999999`, 1), strings.Replace(string(line), "prev", "next", 1)} {
		if h, ok := parseHead([]byte(bad)); ok {
			t.Errorf("%q was taken for a record: %+v", bad, h)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add([]byte(`{"v":1,"seq":2,"type":"request","stage":"Panic","time":"t","session":"s","id":"a\"\\","intent_seq":1,"prev":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		h, ok := parseHead(line)
		if e, err := audit.Parse(line); ok && err == nil && (e.Seq != h.seq || e.Prev != h.prev && !strings.Contains(h.prev, `\`)) {
			t.Errorf("%+v of %s", h, line)
		}
	})
}
