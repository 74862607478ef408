package copies

import "github.com/pipeguard/pipeguard/internal/audit"

// severity is how much a record matters to a reader of nothing else.
type severity int

const (
	info severity = iota
	warning
	failure
)

// kind is what a record is, as far as its fields say.
type kind struct {
	event    uint32 // its number in the Windows event log
	severity severity
	title    string
}

// Numbers of events in the Windows event log. Administrators filter by them: they keep their meaning. Those of the proxy itself are below 200.
const (
	EventAdmitted   = 201
	EventCompleted  = 202
	EventDenied     = 203
	EventRejected   = 204
	EventError      = 205
	EventPanic      = 206
	EventOrphaned   = 207
	EventWouldDeny  = 208
	EventConnection = 210
	EventRefused    = 211
	EventLogOwn     = 220
	EventLogFault   = 221
	EventCheckpoint = 230
	EventUnreadable = 240
)

// modeLogOnly is the mode of a decision that was not enforced.
const modeLogOnly = "LogOnly"

// kind says what the record is. What decides is asked first: an orphan stays one, whatever else it says.
func (f *facts) kind() kind {
	stage, result, effect := f.text("stage"), f.text("outcome.result"), f.text("decision.effect")
	switch {
	case !f.isWhole:
	case f.text("type") == string(audit.TypeLog):
		if f.has("log.fault") || f.has("log.lost") || f.has("log.orphaned") || f.has("log.torn_bytes") || f.has("log.unsigned") || f.text("log.cause") == audit.CauseMissing {
			return kind{EventLogFault, warning, "Audit log went on after a fault"}
		}
		return kind{EventLogOwn, info, "Audit log opened, closed or pruned"}
	case stage == string(audit.StageOrphaned) || result == audit.ResultOrphaned:
		return kind{EventOrphaned, failure, "Request whose end is not known"}
	case stage == string(audit.StagePanic) || result == audit.ResultPanic:
		return kind{EventPanic, failure, "Request met a fault of the proxy"}
	case f.text("type") == string(audit.TypeConnection) && effect != string(audit.EffectDeny) && (result == audit.ResultOK || result == audit.ResultIdle):
		return kind{EventConnection, info, "Connection ended"}
	case f.text("type") == string(audit.TypeConnection):
		return kind{EventRefused, warning, "Connection refused"}
	case result == audit.ResultDenied || effect == string(audit.EffectDeny) && f.text("decision.mode") != modeLogOnly:
		return kind{EventDenied, warning, "Request denied"}
	case effect == string(audit.EffectDeny):
		return kind{EventWouldDeny, warning, "Request let through that a rule would deny"}
	case result == audit.ResultRejected:
		return kind{EventRejected, warning, "Request rejected"}
	case result == audit.ResultError:
		return kind{EventError, info, "Request ended with an error"}
	case result == audit.ResultOK || result == audit.ResultIdle:
		return kind{EventCompleted, info, "Request completed"}
	case result == "" && stage == string(audit.StageRequestReceived):
		return kind{EventAdmitted, info, "Request admitted"}
	}
	return kind{EventUnreadable, warning, "Audit record that this program does not know"}
}
