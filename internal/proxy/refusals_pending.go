package proxy

import (
	"cmp"
	"crypto/rand"
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

const (
	maxNamedTargets = 16  // that a summary names
	maxTargetText   = 256 // bytes of one that is named
)

// refusalKind is what all refusals of one summary have in common.
type refusalKind struct {
	always
	method, code string
	rule, reason string
}

// always is what the refusals of a summary have in common even if there are too many kinds to tell apart: readers rely on it for each of them.
type always struct {
	record       audit.Type
	pipe, result string
	effect       audit.Effect // none if nothing was decided
	mode         string
	hasTargets   bool
}

// coarse is the kind of all refusals that share only always.
func (k refusalKind) coarse() refusalKind { return refusalKind{always: k.always} }

// pendingSummary gathers the refusals of one kind since the last summary.
type pendingSummary struct {
	id      string // of its record; callers are told it already
	count   uint64
	first   time.Time
	last    audit.Event // without what is of one request alone
	targets []audit.Target
	seen    map[uint64]struct{} // targets that are not named, by their hash
}

var targetSeed = maphash.MakeSeed()

// add counts a refusal.
func (s *pendingSummary) add(e *audit.Event) {
	if s.count == 0 {
		s.id, s.first = rand.Text(), e.Time
	}
	before := s.last
	s.last = common(before, e, e.ID, s.id, s.count == 0)
	if s.count += e.Count(); e.Time.Before(s.first) {
		s.first = e.Time
	}
	if e.What != nil {
		for _, t := range e.What.Targets {
			s.target(t)
		}
	}
}

// join adds another summary.
func (s *pendingSummary) join(next *pendingSummary) {
	if next.count == 0 {
		return
	}
	s.last = common(s.last, &next.last, next.id, s.id, false)
	if s.count += next.count; next.first.Before(s.first) {
		s.first = next.first
	}
	for _, t := range next.targets {
		s.target(t)
	}
	for hash := range next.seen {
		s.unnamed(hash)
	}
}

func (s *pendingSummary) target(t audit.Target) {
	if slices.Contains(s.targets, t) {
		return
	}
	if len(s.targets) < maxNamedTargets && len(t.Value) <= maxTargetText {
		s.targets = append(s.targets, audit.Target{Kind: t.Kind, Value: strings.Clone(t.Value)})
		return
	}
	s.unnamed(maphash.String(targetSeed, t.Kind+"\x00"+t.Value))
}

func (s *pendingSummary) unnamed(hash uint64) {
	if s.seen == nil {
		s.seen = map[uint64]struct{}{}
	}
	if len(s.seen) < audit.MaxMoreTargets {
		s.seen[hash] = struct{}{}
	}
}

// event is the summary.
func (s *pendingSummary) event() audit.Event {
	e := s.last
	e.Stage, e.ID = audit.StageSummary, s.id
	what, outcome := *e.What, *e.Outcome
	what.Targets, what.MoreTargets = s.targets, len(s.seen)
	outcome.Count, outcome.First = s.count, s.first.UTC()
	e.What, e.Outcome = &what, &outcome
	return e
}

// common is what the next refusal shares with those before, at the time of the later one. It keeps nothing long of what the caller sent. The
// error of the next one may name its audit id, for which that of the summary stands.
func common(before audit.Event, next *audit.Event, nextID, id string, isFirst bool) audit.Event {
	what, outcome := audit.What{}, audit.Outcome{}
	if next.What != nil {
		w := next.What
		what = audit.What{Pipe: w.Pipe, Group: w.Group, Version: w.Version, Method: shorter(w.Method), FullMethod: shorter(w.FullMethod), Verb: w.Verb}
	}
	if next.Outcome != nil {
		text := next.Outcome.Error
		if nextID != "" {
			text = strings.ReplaceAll(text, nextID, id)
		}
		outcome = audit.Outcome{Result: next.Outcome.Result, Code: next.Outcome.Code, Error: shorter(text), LatencyUS: next.Outcome.LatencyUS}
	}
	e := audit.Event{Type: next.Type, Time: next.Time, Who: shortWho(next.Who), What: &what, Decision: shortDecision(next.Decision), Outcome: &outcome, Where: next.Where}
	if isFirst {
		return e
	}
	if before.Time.After(e.Time) {
		e.Time = before.Time
	}
	e.Who, e.Decision = commonWho(before.Who, e.Who), commonDecision(before.Decision, e.Decision)
	outcome.Code, outcome.Error = sharedText(before.Outcome.Code, outcome.Code), sharedText(before.Outcome.Error, outcome.Error)
	what.FullMethod = sharedText(before.What.FullMethod, what.FullMethod)
	what.Method, what.Verb = sharedText(before.What.Method, what.Method), sharedText(before.What.Verb, what.Verb)
	return e
}

// shortWho is a caller without long texts: it is kept when its connection is gone.
func shortWho(w *audit.Who) *audit.Who {
	if w == nil || w.Process == nil || len(w.Process.Exe) <= maxTargetText {
		return w
	}
	short, process := *w, *w.Process
	process.Exe = audit.CutMark + strings.ToValidUTF8(process.Exe[len(process.Exe)-maxTargetText:], "") // its name is last
	short.Process = &process
	return &short
}

func shortDecision(d *audit.Decision) *audit.Decision {
	if d == nil || len(d.Reason) <= maxTargetText {
		return d
	}
	short := *d
	short.Reason = shorter(short.Reason)
	return &short
}

// commonDecision is what two decisions of one kind share. If it has a reason, all of it holds for each refusal; else the missing parts may have differed.
func commonDecision(a, b *audit.Decision) *audit.Decision {
	if a == nil || b == nil { // of one kind either all are decided or none
		return nil
	}
	isSame, policy := a.Reason == b.Reason && a.Rule == b.Rule, b.Policy
	if !reflect.DeepEqual(a.Policy, b.Policy) {
		isSame, policy = false, nil
	}
	if isSame {
		return b
	}
	return &audit.Decision{Effect: b.Effect, Mode: b.Mode, Rule: sharedText(a.Rule, b.Rule), Policy: policy}
}

// sharedText is a text that both have, or none.
func sharedText(a, b string) string {
	if a != b {
		return ""
	}
	return b
}

// commonWho is what is known of both callers. They are one if all that readers can ask about is the same but process and token. Of several, as of a
// container whose processes have several accounts, the container and the pod that all of them share remain.
func commonWho(a, b *audit.Who) *audit.Who {
	if a == b {
		return b
	}
	several := &audit.Who{Assurance: "none", Doubt: audit.DoubtSeveral}
	if a == nil || b == nil {
		return several
	}
	isOneContainer := a.Pod != nil && a.Assurance == b.Assurance && reflect.DeepEqual(a.Pod, b.Pod) && reflect.DeepEqual(a.Container, b.Container)
	if isOneContainer {
		several.Assurance, several.Pod, several.Container = b.Assurance, b.Pod, b.Container
	}
	if a.Doubt == audit.DoubtSeveral {
		return several
	}
	w := *b
	if a.Process == nil || b.Process == nil || *a.Process != *b.Process {
		w.Process = nil
	}
	if a.TokenID != b.TokenID || a.Token != b.Token || a.TokenState != b.TokenState {
		w.Token, w.TokenID, w.TokenState = false, "", audit.TokenSeveral
	}
	if w.Doubt = cmp.Or(b.Doubt, a.Doubt); a.Assurance == b.Assurance && a.Host == b.Host && reflect.DeepEqual(a.User, b.User) &&
		reflect.DeepEqual(a.Pod, b.Pod) && reflect.DeepEqual(a.Container, b.Container) {
		return &w
	}
	return several
}

// shorter is what answers, diagnostics and summaries repeat of a text that a caller has chosen.
func shorter(s string) string { return cut(s, maxTargetText) }

// cut is a copy of at most so many bytes of a text, with a mark if it was longer.
func cut(s string, most int) string {
	if len(s) <= most {
		return strings.Clone(s)
	}
	return strings.ToValidUTF8(s[:most], "") + audit.CutMark
}
