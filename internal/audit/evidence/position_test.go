package evidence

import (
	"testing"
)

// What follows on a position counts as it does in the whole log: not by the signature of a key that was replaced before.
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
