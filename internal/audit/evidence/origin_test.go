package evidence

import (
	"strings"
	"testing"
)

func TestALogOfAnotherNodeIsNotTakenForTheOneThatIsMeant(t *testing.T) {
	m := sample(t)
	other := newKey(t, Origin("another"))
	keys := m.keys().And(keysOf(t, other.LogKey()))
	outside := []string{m.outside()}
	r := verify(t, VerifyOptions{Dir: m.dir, Keys: keys, Outside: outside})
	if r.Verdict != VerdictIncomplete || !strings.Contains(strings.Join(r.Incomplete, " "), "the name of this one was not given") {
		t.Errorf("of either node: %s %v", r.Verdict, r.Incomplete)
	}
	if r := verify(t, VerifyOptions{Dir: m.dir, Keys: keys, Outside: outside, Origin: m.key.Name()}); r.Verdict != VerdictOK {
		t.Errorf("of this node: %s %v %v", r.Verdict, r.Fault, r.Incomplete)
	}
	if r, err := Verify(t.Context(), VerifyOptions{Dir: m.dir, Keys: keys, Outside: outside, Origin: other.Name()}); err == nil && r.Verdict == VerdictOK {
		t.Error("it is taken for the other node's")
	}
}
