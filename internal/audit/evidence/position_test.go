package evidence

import (
	"bytes"
	"path/filepath"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// Records behind a position count as they do in the whole log: a checkpoint by a key that was replaced earlier does not cover them.
func TestAPositionKnowsWhichKeysWereReplaced(t *testing.T) {
	m, old, _ := rotated(t)
	keys := keysOf(t, old.LogKey(), m.key.LogKey())
	at := verify(t, VerifyOptions{Dir: m.dir, Keys: keys}).Position
	if at.Last() == 0 {
		t.Fatal("no position")
	}
	before := at.Last()
	signedBy(t, m, old)
	for name, after := range map[string]Position{"the beginning": {}, "a position": at} {
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: keys, After: after})
		if r.Fault != nil || r.Position.Last() > before || r.LastSeq <= before {
			t.Errorf("from %s: signed up to %d of %d, %v", name, r.Position.Last(), r.LastSeq, r.Fault)
		}
	}
	signedBy(t, m, m.key)
	for name, after := range map[string]Position{"the beginning": {}, "a position": at} {
		r := verify(t, VerifyOptions{Dir: m.dir, Keys: keys, After: after})
		if r.Fault != nil || r.Position.Last() != r.LastSeq || r.LastSeq <= before {
			t.Errorf("from %s: signed up to %d of %d, %v", name, r.Position.Last(), r.LastSeq, r.Fault)
		}
	}
}

func TestAReportHoldsWhatItWasToldToKeep(t *testing.T) {
	m, old, _ := rotated(t)
	keys := keysOf(t, old.LogKey(), m.key.LogKey())
	at := verify(t, VerifyOptions{Dir: m.dir, Keys: keys}).Position
	signedBy(t, m, m.key)
	var leaves []tlog.Hash // of all records, in order
	segments, _ := paths(t, m)
	for _, name := range segments {
		for line := range bytes.Lines(files(t, m.dir)[filepath.Base(name)]) {
			leaves = append(leaves, Leaf(bytes.TrimSuffix(line, []byte("\n"))))
		}
	}
	for name, after := range map[string]Position{"the beginning": {}, "a position": at} {
		kept, without := verify(t, VerifyOptions{Dir: m.dir, Keys: keys, After: after, Hold: true}), verify(t, VerifyOptions{Dir: m.dir, Keys: keys, After: after})
		for i, leaf := range leaves {
			seq := uint64(i + 1) // #nosec G115 -- an index
			if got := kept.Holds(seq, leaf); got != (seq > after.Last()) {
				t.Errorf("from %s: record %d is held: %t", name, seq, got)
			}
			if kept.Holds(seq, leaves[(i+1)%len(leaves)]) || kept.Holds(seq+uint64(len(leaves)), leaf) || without.Holds(seq, leaf) {
				t.Errorf("from %s: record %d is held as another, or without being kept", name, seq)
			}
		}
	}
}
