package token

import "time"

// Metrics are called when something happened. Each may be nil, and may be called at the same time as any other.
type Metrics struct {
	// Checked is called once for each call on a pipe that looks at tokens. Outcome is ok, stale, absent, ignored, or a Reason.
	Checked func(pipe, outcome string)
	// Authorized is called once for each call of Authorize. Outcome is ok, stale, or a Reason.
	Authorized func(pipe, outcome string)
	// Asked is called when the API server was asked for a TokenReview or a SubjectAccessReview. Outcome is ok or a Reason.
	Asked func(kind, outcome string, took time.Duration)
	// Reloaded is called when the file with keys was read because it has changed; on an error the previous keys stay in force.
	Reloaded func(err error)
}

func (m Metrics) checked(pipe string, r Result, refusal *Refusal) {
	if m.Checked == nil {
		return
	}
	switch {
	case refusal != nil:
		m.Checked(pipe, string(refusal.Reason))
	case r.Unbound:
		m.Checked(pipe, "ignored")
	case !r.Present:
		m.Checked(pipe, "absent")
	default:
		m.Checked(pipe, outcome(nil, r.Stale))
	}
}

func (m Metrics) authorized(pipe string, refusal *Refusal, stale bool) {
	if m.Authorized != nil {
		m.Authorized(pipe, outcome(refusal, stale))
	}
}

func (m Metrics) asked(kind string, refusal *Refusal, took time.Duration) {
	if m.Asked != nil {
		m.Asked(kind, outcome(refusal, false), took)
	}
}

func (m Metrics) reloaded(err error) {
	if m.Reloaded != nil {
		m.Reloaded(err)
	}
}

func outcome(refusal *Refusal, stale bool) string {
	switch {
	case refusal != nil:
		return string(refusal.Reason)
	case stale:
		return "stale"
	}
	return "ok"
}
