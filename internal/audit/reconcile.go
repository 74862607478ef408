package audit

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Report is what Reconcile found.
type Report struct {
	Records     int
	Sessions    int
	Intents     int
	Terminals   int // records that end a request: of an intent, or a denial or reject of their own
	Connections int
	Admissions  int
	Repeated    int // records written again after a failed write, whose first copy is there too
	// Open are the intents that nothing ended, by session and number. In the log of a running process they may be calls in flight.
	Open []Intent
	// TornTail means that the last line has no newline: a process is writing it, or died doing so.
	TornTail bool
	// Faults are contradictions that no running process explains. After maxFaults only FaultCount goes on.
	Faults     []Fault
	FaultCount int
}

// Intent names a RequestReceived record.
type Intent struct {
	Session string
	Seq     uint64
	ID      string
}

// Fault is one contradiction in a log.
type Fault struct {
	Session string
	Seq     uint64
	ID      string
	Problem string
}

func (f Fault) String() string {
	return fmt.Sprintf("session %s record %d (id %q): %s", f.Session, f.Seq, f.ID, f.Problem)
}

// maxFaults bounds what a log made of faults costs in memory.
const maxFaults = 1000

// Reconcile checks that numbers have no gaps within a session, that each session begins where the
// one before it ended, and that each intent has exactly one terminal record. It holds the ids of
// all requests in memory. The error is one of reading; faults of the log are in the report.
func Reconcile(records iter.Seq2[Event, error]) (Report, error) {
	r := reconciler{last: map[string]uint64{}, intents: map[string]Intent{}, ended: map[string]bool{}}
	for event, err := range records {
		var line *LineError
		switch {
		case errors.As(err, &line):
			r.badLine(line)
		case err != nil:
			return r.report, err
		default:
			r.record(event)
		}
	}
	switch {
	case r.torn != nil && r.torn.Torn:
		r.report.TornTail = true
	case r.torn != nil:
		r.fault(Event{}, r.torn.Error())
	}
	r.report.Open = slices.SortedFunc(maps.Values(r.intents), func(a, b Intent) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq))
	})
	return r.report, nil
}

type reconciler struct {
	report   Report
	last     map[string]uint64 // session -> number of its last record
	previous Intent            // the record before this one, by session and number
	torn     *LineError        // a bad line that the next LogOpen may account for
	intents  map[string]Intent // open intents by id
	ended    map[string]bool   // ids that have their terminal record
}

func (r *reconciler) fault(e Event, problem string) {
	if r.report.FaultCount++; len(r.report.Faults) < maxFaults {
		r.report.Faults = append(r.report.Faults, Fault{e.Session, e.Seq, e.ID, problem})
	}
}

func (r *reconciler) badLine(line *LineError) {
	if r.torn != nil {
		r.fault(Event{}, r.torn.Error())
	}
	r.torn = line
}

func (r *reconciler) record(e Event) {
	r.report.Records++
	r.number(e)
	if r.torn != nil {
		if e.Log == nil || e.Log.TornBytes != r.torn.Bytes {
			r.fault(e, fmt.Sprintf("the line before is no record and is not declared here: %v", r.torn))
		}
		r.torn = nil
	}
	switch {
	case e.Type == TypeLog:
		r.opening(e)
	case e.Type == TypeConnection:
		r.report.Connections++
		r.once(e)
	case e.Type == TypeAdmission:
		r.report.Admissions++
		r.once(e)
	case e.Type != TypeRequest:
		r.fault(e, fmt.Sprintf("unknown type %q", e.Type))
	case e.Stage == StageRequestReceived:
		r.intent(e)
	case e.Stage == StageResponseComplete || e.Stage == StagePanic:
		r.terminal(e)
	default:
		r.fault(e, fmt.Sprintf("unknown stage %q", e.Stage))
	}
	r.previous = Intent{Session: e.Session, Seq: e.Seq}
}

func (r *reconciler) number(e Event) {
	last, known := r.last[e.Session]
	if !known {
		r.report.Sessions++
	}
	if e.Seq != last+1 {
		r.fault(e, fmt.Sprintf("expected number %d", last+1))
	}
	r.last[e.Session] = max(last, e.Seq)
}

// opening compares what the writer found at the end of its file with what was read up to here.
func (r *reconciler) opening(e Event) {
	if e.Stage != StageLogOpen {
		return
	}
	if e.Seq != 1 {
		r.fault(e, "a session is opened once, by its first record")
	}
	if e.Log == nil {
		r.fault(e, "the opening does not say what was there before")
		return
	}
	if e.Log.PreviousSession != r.previous.Session || e.Log.PreviousSeq != r.previous.Seq {
		r.fault(e, fmt.Sprintf("when the session began, the last record was %d of session %q", e.Log.PreviousSeq, e.Log.PreviousSession))
	}
}

func (r *reconciler) once(e Event) {
	key := string(e.Type) + "/" + e.ID
	if r.ended[key] {
		r.repeated(e)
	}
	r.ended[key] = true
}

func (r *reconciler) intent(e Event) {
	r.report.Intents++
	if _, open := r.intents[e.ID]; open || r.ended[e.ID] {
		r.fault(e, "a second intent with this id")
		return
	}
	r.intents[e.ID] = Intent{e.Session, e.Seq, e.ID}
}

func (r *reconciler) terminal(e Event) {
	if r.ended[e.ID] {
		r.repeated(e)
		return
	}
	r.report.Terminals++
	r.ended[e.ID] = true
	intent, open := r.intents[e.ID]
	delete(r.intents, e.ID)
	switch {
	case e.Outcome == nil:
		r.fault(e, "a terminal record without an outcome")
	case open && intent.Seq != e.IntentSeq:
		r.fault(e, fmt.Sprintf("ends intent %d, but the intent with this id is %d", e.IntentSeq, intent.Seq))
	case !open && e.needsIntent():
		r.fault(e, "ends an operation that has no intent")
	}
}

// needsIntent says whether a terminal record claims that the operation was let through.
// A refused request has no intent, or one of which nobody knows whether it was written.
func (e Event) needsIntent() bool {
	switch e.Outcome.Result {
	case ResultDenied, ResultRejected:
		return false
	case ResultPanic: // before the intent or after it
		return e.IntentSeq != 0
	}
	return true
}

func (r *reconciler) repeated(e Event) {
	if e.Again {
		r.report.Repeated++
		return
	}
	r.fault(e, "a second terminal record with this id")
}
