package audit

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Report is what Reconcile found. The fields of its JSON form are promised to users.
type Report struct {
	Records     int `json:"records"`
	Sessions    int `json:"sessions"`
	Intents     int `json:"intents"`
	Terminals   int `json:"terminals"`   // requests that ended: of an intent, or denied or rejected; those that a summary counts included
	Connections int `json:"connections"` // those that a summary counts included
	Admissions  int `json:"admissions"`
	Repeated    int `json:"repeated"` // records written again after a failed write, whose first copy is there too
	// Unrecorded are ends of operations whose intents the writer let go, told to continue without a log: no more of them in a session
	// than its LogOpen records say that records were lost.
	Unrecorded int `json:"unrecorded"`
	// Pruned are ends of operations whose intents the log removed with its oldest segments, as it says.
	Pruned int `json:"pruned"`
	// Unwritten is how many requests and connections, by the last records of their sessions, ended without a record.
	Unwritten int `json:"unwritten"`
	// TornTail means that the last line has no newline: a process is writing it, or died doing so.
	TornTail bool `json:"tornTail"`
	// Open are the intents that nothing ended, by session and number. In the log of a running process they may be calls in flight.
	Open []Intent `json:"openIntents"`
	// Faults are contradictions that no running process explains. After maxFaults only FaultCount goes on.
	FaultCount int     `json:"faultCount"`
	Faults     []Fault `json:"faults"`
}

// Intent names a RequestReceived record.
type Intent struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	ID      string `json:"id"`
}

// Fault is one contradiction in a log.
type Fault struct {
	Session string `json:"session"`
	Seq     uint64 `json:"seq"`
	ID      string `json:"id"`
	Problem string `json:"problem"`
}

// maxFaults bounds what a log made of faults costs in memory.
const maxFaults = 1000

// Reconcile checks that numbers have no gaps within a session, or in a log of segments over all, that each session begins where the
// one before it ended, and that each intent has exactly one terminal record. Memory is bounded: it knows the last maxEnded ids that
// were ended, so that a second end of an older one shows only if it needs an intent. The error is one of reading; faults of the log are
// in the report.
//
// A log may have removed its oldest segments. If an end is of an intent before the first record that is there, prunedUntil is asked for the last record of
// those that the log removed: it excuses what is missing up to there.
func Reconcile(records iter.Seq2[Event, error], prunedUntil func() (uint64, error)) (Report, error) {
	r := reconciler{last: map[string]uint64{}, intents: map[string]Intent{}, ended: recent{max: maxEnded}}
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
	r.settle()
	if err := r.excuse(prunedUntil); err != nil {
		return r.report, err
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
	ended    recent            // ids that have their terminal record
	lost     uint64            // records that the writer of this session says it let go, less those that explained an end
	waiting  []Event           // ends without an intent, which a later LogOpen of this session may explain
	first    uint64            // number of the first record of a log of segments
	early    []Event           // ends of intents before that one
}

// Bounds of what a log may make a reader remember. Far more than a proxy carries out at once, or than a log has sessions.
const (
	maxEnded    = 1 << 18
	maxIntents  = 1 << 18
	maxSessions = 1 << 16
)

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
	if r.previous.Session != e.Session {
		r.settle()
	}
	if e.Log != nil {
		r.letGo(e.Log.Lost)
		r.report.Unwritten += clampCount(e.Log.Unwritten)
	}
	if r.torn != nil {
		if e.Log == nil || r.torn.Bytes == 0 || e.Log.TornBytes != r.torn.Bytes {
			r.fault(e, fmt.Sprintf("the line before is no record and is not declared here: %v", r.torn))
		}
		r.torn = nil
	}
	switch {
	case e.Type == TypeLog:
		r.opening(e)
	case e.Type == TypeConnection:
		r.report.Connections += clampCount(e.Count())
		r.once(e)
	case e.Type == TypeAdmission:
		r.report.Admissions++
		r.once(e)
	case e.Type == TypeRequest && e.Stage == StageSummary:
		r.report.Terminals += clampCount(e.Count())
		r.once(e)
	case e.Type != TypeRequest:
		r.fault(e, fmt.Sprintf("unknown type %q", e.Type))
	case e.Stage == StageRequestReceived:
		r.intent(e)
	case e.Stage == StageResponseComplete || e.Stage == StagePanic || e.Stage == StageOrphaned:
		r.terminal(e)
	default:
		r.fault(e, fmt.Sprintf("unknown stage %q", e.Stage))
	}
	r.previous = Intent{Session: e.Session, Seq: e.Seq}
}

func (r *reconciler) number(e Event) {
	session := keyOf(e.Session)
	last, known := r.last[session]
	if !known {
		r.report.Sessions++
	}
	if e.Prev != "" { // in a log of segments numbers run on over all sessions; a log that was pruned begins anywhere
		if last = r.previous.Seq; r.report.Records == 1 {
			last, r.first = e.Seq-1, e.Seq
		}
	}
	if e.Seq != last+1 {
		r.fault(e, fmt.Sprintf("expected number %d", last+1))
	}
	if known || len(r.last) < maxSessions {
		r.last[session] = max(last, e.Seq)
	}
}

// opening compares what the writer found at the end of its file with what was read up to here.
func (r *reconciler) opening(e Event) {
	if e.Stage != StageLogOpen {
		return
	}
	if e.Seq != 1 && e.Prev == "" {
		r.fault(e, "a session is opened once, by its first record")
	}
	if e.Log == nil {
		r.fault(e, "the opening does not say what was there before")
		return
	}
	if r.report.Records == 1 && e.Prev != "" {
		return // what was before may have been pruned
	}
	if e.Log.PreviousSession != r.previous.Session || e.Log.PreviousSeq != r.previous.Seq {
		r.fault(e, fmt.Sprintf("when the session began, the last record was %d of session %q", e.Log.PreviousSeq, e.Log.PreviousSession))
	}
}

func (r *reconciler) once(e Event) {
	key := string(e.Type) + "/" + keyOf(e.ID)
	if r.ended.has(key) {
		r.repeated(e)
	}
	r.ended.add(key)
}

func (r *reconciler) intent(e Event) {
	r.report.Intents++
	key := keyOf(e.ID)
	if _, open := r.intents[key]; open || r.ended.has(key) {
		r.fault(e, "a second intent with this id")
		return
	}
	if len(r.intents) >= maxIntents {
		r.fault(e, fmt.Sprintf("%d intents before it are open: what becomes of this one is not followed", maxIntents))
		return
	}
	r.intents[key] = Intent{keyOf(e.Session), e.Seq, key}
}

func (r *reconciler) terminal(e Event) {
	key := keyOf(e.ID)
	if r.ended.has(key) {
		r.repeated(e)
		return
	}
	r.report.Terminals += clampCount(e.Count())
	r.ended.add(key)
	intent, open := r.intents[key]
	delete(r.intents, key)
	switch {
	case e.Outcome == nil:
		r.fault(e, "a terminal record without an outcome")
	case open && intent.Seq != e.IntentSeq:
		r.fault(e, fmt.Sprintf("ends intent %d, but the intent with this id is %d", e.IntentSeq, intent.Seq))
	case !open && e.needsIntent():
		r.withoutIntent(e)
	}
}

// needsIntent says whether a terminal record claims that the operation was let through.
// A refused request has no intent, or one that may or may not have been written.
func (e Event) needsIntent() bool {
	switch e.Outcome.Result {
	case ResultDenied, ResultRejected:
		return false
	case ResultPanic: // before the intent or after it
		return e.IntentSeq != 0
	}
	return true
}

// clampCount keeps what a record claims from running over.
func clampCount(n uint64) int { return int(min(n, mostCount)) } // #nosec G115 -- bounded

func (r *reconciler) repeated(e Event) {
	if e.Again {
		r.report.Repeated++
		return
	}
	r.fault(e, "a second terminal record with this id")
}
