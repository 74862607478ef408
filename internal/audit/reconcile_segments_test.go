package audit

import "testing"

// Records of a log of segments are numbered over sessions, and may begin anywhere.
func TestReconcileFollowsNumbersOverSegments(t *testing.T) {
	record := func(session string, seq uint64, e *Event) Event {
		e.V, e.Session, e.Seq, e.Prev = Version, session, seq, "hash"
		return *e
	}
	opening := func(session string, seq uint64, found Log) Event {
		return record(session, seq, &Event{Type: TypeLog, Stage: StageLogOpen, Log: &found})
	}
	log := func() []Event {
		return []Event{
			opening("a", 5, Log{PreviousSession: "pruned", PreviousSeq: 4}),
			record("a", 6, request("x", StageRequestReceived, 0, "")),
			opening("a", 7, Log{PreviousSession: "a", PreviousSeq: 6}),
			opening("b", 8, Log{PreviousSession: "a", PreviousSeq: 7}),
			record("b", 9, request("x", StageOrphaned, 6, ResultOrphaned)),
			record("b", 10, &Event{Type: TypeLog, Stage: StageLogPrune, Log: &Log{Pruned: &Pruned{LastSeq: 4}}}),
		}
	}
	reconcile := func(events []Event) Report {
		r, err := reconcile(func(yield func(Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := reconcile(log()); r.FaultCount != 0 || len(r.Open) != 0 || r.Terminals != 1 || r.Sessions != 2 {
		t.Errorf("%+v", r)
	}
	for name, change := range map[string]func([]Event) []Event{
		"a record is missing":         func(e []Event) []Event { return append(e[:1:1], e[2:]...) },
		"an opening is missing":       func(e []Event) []Event { return append(e[:3:3], e[4:]...) },
		"numbers begin anew":          func(e []Event) []Event { e[3].Seq = 1; return e },
		"the opening tells otherwise": func(e []Event) []Event { e[3].Log.PreviousSeq = 6; return e },
		"an end of something else":    func(e []Event) []Event { e[4].IntentSeq = 5; return e },
		"a second end":                func(e []Event) []Event { again := e[4]; again.Seq = 11; return append(e, again) },
	} {
		if r := reconcile(change(log())); r.FaultCount == 0 {
			t.Errorf("%s: no fault", name)
		}
	}
}
