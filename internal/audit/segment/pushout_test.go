package segment_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Records that an attacker adds, with a number each.
const (
	anEnd    = `"type":"request","stage":"ResponseComplete","time":"2026-03-02T12:00:00Z","session":"s","id":"forged%d","what":{"method":"Forged"}`
	anIntent = `"type":"request","stage":"RequestReceived","time":"2026-03-02T12:00:00Z","session":"s","id":"forged%d","what":{"method":"Forged"}`
)

// add appends records to the last segment that continue the chain of hashes, of so many bytes together.
func (n *node) add(t *testing.T, record string, bytes int) {
	t.Helper()
	last, text, line := n.end(t)
	seq, _, _ := segment.ParseLine(line)
	var added strings.Builder
	for added.Len() < bytes {
		seq++
		leaf := segment.Leaf(line)
		line = fmt.Appendf(nil, `{"v":1,"seq":%d,`+record+`,"prev":"%s"}`, seq, seq, base64.StdEncoding.EncodeToString(leaf[:]))
		added.Write(line)
		added.WriteByte('\n')
	}
	n.put(t, last, text+added.String())
}

// Records that an attacker adds after a kill, before the next start signs them, cause no removal of signed ones.
func TestRecordsThatWereAddedAfterAKillPushNothingOut(t *testing.T) {
	for name, record := range map[string]string{
		"ends":                          anEnd,
		"beginnings":                    anIntent, // for each of which the start writes an end
		"beginnings that become longer": strings.Replace(anIntent, `"Forged"`, `"`+strings.Repeat("<", 1000)+`"`, 1),
	} {
		t.Run(name, func(t *testing.T) { addedAfterAKill(t, record) })
	}
}

func addedAfterAKill(t *testing.T, record string) {
	synctest.Test(t, func(t *testing.T) {
		p := newPruning(t)
		p.write(t, 4) // well below what is kept
		p.close(t)
		n := &node{dir: p.dir, key: p.key}
		n.crash(t, 1)
		before := n.segments(t)
		for starts := range 3 {
			if starts < 2 { // the third start finds what the first two took over
				n.add(t, record, 5*audit.MaxRecord/2)
			}
			p.open(t)
			p.hear()
			if _, err := p.w.Append(t.Context(), &audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: "a", Outcome: &audit.Outcome{Result: audit.ResultOK}}); err != nil {
				t.Fatal(err)
			}
			p.settle()
			if s := p.w.Stats(); s.Pruned != 0 || s.Err != nil {
				t.Fatalf("start %d: %+v", starts, s)
			}
			p.close(t)
			if starts < 2 {
				n.crash(t, 1)
			}
		}
		if now := n.segments(t); !slices.Equal(now[:len(before)], before) {
			t.Errorf("%q, want what was there, %q", now, before)
		}
		p.open(t)
		for pruned := uint64(0); pruned == 0; { // in the end they go like all others
			pruned = p.fill(t).Pruned
		}
		for range 8 {
			p.fill(t)
		}
		if s := p.w.Stats(); s.Bytes > 8*audit.MaxRecord {
			t.Errorf("%d bytes are kept: what was added is gone, and still counts", s.Bytes)
		}
		p.close(t)
		p.verify(t)
	})
}

// More than is kept for callers' refusals is more than a kill leaves.
func TestAStartTellsOfManyUnsignedRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPruning(t)
		p.fill(t)
		p.close(t)
		n := &node{dir: p.dir, key: p.key}
		n.crash(t, 1)
		p.open(t)
		if told := p.hear(); len(told) > 0 {
			t.Errorf("an ordinary kill: %v", told)
		}
		p.close(t)
		n.crash(t, 1)
		n.add(t, anEnd, audit.MaxRecord)
		p.open(t)
		if told := p.hear(); len(told) != 1 || !strings.Contains(told[0].Error(), "that no checkpoint covers") {
			t.Errorf("%v", told)
		}
		p.close(t)
	})
}
