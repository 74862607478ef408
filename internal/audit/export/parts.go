package export

import (
	"cmp"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// whole is a record in which nothing is missing: what it does not say is empty.
type whole struct {
	who struct {
		audit.Who
		Process   audit.WhoProcess
		User      audit.WhoUser
		Pod       audit.WhoPod
		Container audit.WhoContainer
	}
	what     audit.What
	decision struct {
		audit.Decision
		Policy audit.Policy
	}
	outcome    audit.Outcome
	conn, node string
	admission  string
}

func parts(e *audit.Event) (w whole) {
	if e.Who != nil {
		w.who.Who = *e.Who
		fill(&w.who.Process, e.Who.Process)
		fill(&w.who.User, e.Who.User)
		fill(&w.who.Pod, e.Who.Pod)
		fill(&w.who.Container, e.Who.Container)
	}
	fill(&w.what, e.What)
	if e.Decision != nil {
		w.decision.Decision = *e.Decision
		fill(&w.decision.Policy, e.Decision.Policy)
	}
	fill(&w.outcome, e.Outcome)
	if e.Corr != nil {
		w.conn, w.admission = e.Corr.Conn, e.Corr.AdmissionUID
	}
	if e.Where != nil {
		w.node = e.Where.Node
	}
	return w
}

func fill[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// detail says what came of it in the words that say most: why it was denied, else what went wrong.
func (w *whole) detail() string {
	if w.decision.Effect == audit.EffectDeny {
		return cmp.Or(w.decision.Reason, w.outcome.Error)
	}
	return cmp.Or(w.outcome.Error, w.decision.Reason)
}

// isGood says that the request, or the connection, ended well.
func (w *whole) isGood() bool {
	return w.outcome.Result == audit.ResultOK || w.outcome.Result == audit.ResultIdle
}

// rfc3339 is a time in UTC.
func rfc3339(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
