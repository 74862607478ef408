package audit

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// A writer that is told to continue without a log lets records go, and says how many.
func TestReconcileTakesNoMoreEndsWithoutIntentThanWereLost(t *testing.T) {
	opening := func(session string, lost uint64) *Event {
		return &Event{Session: session, Type: TypeLog, Stage: StageLogOpen, Log: &Log{Lost: lost}}
	}
	end := func(session, id string, intent uint64) *Event {
		e := request(id, StageResponseComplete, intent, ResultOK)
		e.Session = session
		return e
	}
	for name, tt := range map[string]struct {
		events             []*Event
		faults, unrecorded int
	}{
		"none is lost":                        {[]*Event{opening("s", 0), end("s", "a", 0)}, 1, 0},
		"the intent is lost":                  {[]*Event{opening("s", 0), opening("s", 1), end("s", "a", 0)}, 0, 1},
		"it is said later, of a full disk":    {[]*Event{opening("s", 0), end("s", "a", 0), opening("s", 1)}, 0, 1},
		"fewer are lost than end":             {[]*Event{opening("s", 1), end("s", "a", 0), end("s", "b", 0)}, 1, 1},
		"fewer are lost than ended":           {[]*Event{opening("s", 0), end("s", "a", 0), end("s", "b", 0), opening("s", 1)}, 1, 1},
		"each is taken once":                  {[]*Event{opening("s", 0), end("s", "a", 0), opening("s", 1), end("s", "b", 0)}, 1, 1},
		"more are lost, as ends are too":      {[]*Event{opening("s", 5), end("s", "a", 0)}, 0, 1},
		"it says which intent it ends":        {[]*Event{opening("s", 5), end("s", "a", 1)}, 1, 0},
		"another session lost them":           {[]*Event{opening("s", 5), opening("t", 0), end("t", "a", 0)}, 1, 0},
		"another session says it later":       {[]*Event{opening("s", 0), end("s", "a", 0), opening("t", 5)}, 1, 0},
		"a number that no counter can be at":  {[]*Event{opening("s", 1<<64-1), opening("s", 1<<64-1), end("s", "a", 0)}, 0, 1},
		"twice the same end, and one is lost": {[]*Event{opening("s", 1), end("s", "a", 0), end("s", "a", 0)}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := reconcile(func(yield func(Event, error) bool) {
				var before *Event
				for i, e := range tt.events {
					e.V, e.Seq, e.Prev = Version, uint64(i)+1, "hash"
					if e.Log != nil && before != nil {
						e.Log.PreviousSession, e.Log.PreviousSeq = before.Session, before.Seq
					}
					if before = e; !yield(*e, nil) {
						return
					}
				}
			})
			if err != nil || r.FaultCount != tt.faults || r.Unrecorded != tt.unrecorded {
				t.Errorf("error %v, report %+v", err, r)
			}
		})
	}
}

// Names of a log that was made up are as long as a record allows; a proxy's are short.
func TestReconcileRemembersLittleOfLongNames(t *testing.T) {
	const count = 4096
	long := strings.Repeat("x", 7000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var most uint64
	r, err := reconcile(func(yield func(Event, error) bool) {
		for i := range count {
			name := strings.Clone(long) + fmt.Sprint(i)
			yield(Event{Session: name, Seq: 1, Type: TypeRequest, Stage: StageRequestReceived, ID: name}, nil)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		most = after.HeapAlloc
	})
	if err != nil || len(r.Open) != count {
		t.Errorf("error %v, %d intents", err, len(r.Open))
	}
	if most > before.HeapAlloc+count*2000 {
		t.Errorf("%d bytes for each name", (most-before.HeapAlloc)/count)
	}
}
