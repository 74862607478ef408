package audit

import (
	"slices"
	"time"
)

// IsRefusal says whether a record is about a request or connection that was turned away, so that nothing was carried out: no intent
// precedes it. Such records can be provoked by callers who may do nothing else, and are therefore bounded apart from all others.
func (e *Event) IsRefusal() bool {
	switch {
	case e.Stage == StageSummary:
		return true
	case e.Outcome == nil:
		return false
	case e.Type == TypeConnection:
		return e.Outcome.Result != ResultOK
	case e.Type != TypeRequest || e.IntentSeq != 0:
		return false
	}
	return slices.Contains([]string{ResultDenied, ResultRejected, ResultPanic}, e.Outcome.Result)
}

// IsUnread says whether a record is about requests or objects that were refused before it was known what they named.
func (e *Event) IsUnread() bool {
	if e.Outcome == nil || e.Outcome.Result != ResultRejected && e.Outcome.Result != ResultPanic || e.What != nil && len(e.What.Targets) > 0 {
		return false
	}
	if e.Type == TypeAdmission { // its parameters name the object, and say nothing of what is in it
		return true
	}
	return e.Type == TypeRequest && e.Stage != StageRequestReceived && e.IntentSeq == 0 && e.Decision == nil && (e.What == nil || len(e.What.Params) == 0)
}

// CutMark stands in a summary for the end of a text that is longer than a summary holds, and for the beginning of a program's path.
const CutMark = "[cut]"

// MaxMoreTargets is where the count of What.MoreTargets stops.
const MaxMoreTargets = 256

// Begin is when the first of the requests or connections that a record stands for ended; Time is when the last one did.
func (e *Event) Begin() time.Time {
	if e.Stage == StageSummary && e.Outcome != nil && !e.Outcome.First.IsZero() && e.Outcome.First.Before(e.Time) {
		return e.Outcome.First
	}
	return e.Time
}

// IsClockSetBack says that the last refusal of a summary is earlier than its first, so that neither bounds the times of the others.
func (e *Event) IsClockSetBack() bool {
	return e.Stage == StageSummary && e.Outcome != nil && e.Outcome.First.After(e.Time)
}

// mostCount bounds what a record may claim to stand for, so that sums stay within range.
const mostCount = 1 << 40

// Count is how many requests or connections a record stands for. Summaries of these, and what was no call, alone can stand for more than one, whatever other
// records claim.
func (e *Event) Count() uint64 {
	isSummary := e.Stage == StageSummary && (e.Type == TypeRequest || e.Type == TypeConnection)
	if e.Outcome == nil || !isSummary && !e.isNoCall() {
		return 1
	}
	return min(max(1, e.Outcome.Count), mostCount)
}

// isNoCall says whether a record is about requests that gRPC refused before they named a method.
func (e *Event) isNoCall() bool {
	return e.Type == TypeRequest && e.Stage == StageResponseComplete && e.Outcome.Result == ResultRejected && e.IsUnread() &&
		(e.What == nil || e.What.Method == "" && e.What.FullMethod == "")
}
