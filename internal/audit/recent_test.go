package audit

import (
	"fmt"
	"testing"
)

func TestRecentKnowsTheLastKeysAndForgetsTheRest(t *testing.T) {
	r := recent{max: 10}
	for i := range 1000 {
		key := fmt.Sprint(i)
		if r.has(key) {
			t.Fatalf("%s is known before it was added", key)
		}
		r.add(key)
		for back := range min(i+1, 10) {
			if !r.has(fmt.Sprint(i - back)) {
				t.Fatalf("after %d, %d is forgotten", i, i-back)
			}
		}
		if n := len(r.young) + len(r.old); n > 20 {
			t.Fatalf("%d keys are kept", n)
		}
	}
	if r.has("0") {
		t.Error("the first key is never forgotten")
	}
}

// However long a log is, and whatever is in it, what is remembered of it is bounded.
func TestReconcileRemembersABoundedPart(t *testing.T) {
	const records = maxIntents + 1000
	r, err := reconcile(func(yield func(Event, error) bool) {
		for i := range uint64(records) {
			e := request(fmt.Sprint("intent ", i), StageRequestReceived, 0, "")
			e.V, e.Session, e.Seq = Version, fmt.Sprint("session ", i), 1
			if !yield(*e, nil) {
				return
			}
		}
	})
	if err != nil || r.Records != records || len(r.Open) != maxIntents || r.FaultCount < 1000 || len(r.Faults) != maxFaults {
		t.Errorf("%v: %d records, %d open intents, %d faults, %d of them named", err, r.Records, len(r.Open), r.FaultCount, len(r.Faults))
	}
}
