package acl

import (
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Verdict is what one rule says to a request.
type Verdict struct {
	Rule    string
	Covers  bool   // the rule would allow the call if no other did before it
	Decides bool   // it is the first that does
	Names   bool   // it names the caller for the call, see Decision.Named
	Why     string // which caller of the rule agrees, or what the first thing is that does not
}

// Explain asks one rule after the other, in their order. It is what Decide comes to without looking anything up.
func (p *Policy) Explain(r Request) []Verdict {
	q := queryOf(r)
	verdicts := make([]Verdict, len(p.rules))
	at := -1 // the one that decides
	for i := range p.rules {
		verdicts[i] = p.explain(i, r, &q)
		if v := &verdicts[i]; v.Covers && (at < 0 || v.Names && !verdicts[at].Names) {
			at = i
		}
	}
	if at < 0 {
		return verdicts
	}
	decides := &verdicts[at]
	decides.Decides = true
	for i := range verdicts {
		switch v := &verdicts[i]; {
		case i < at && v.Covers:
			v.Why += "; but rule " + decides.Rule + " names this caller for " + r.Operation
		case i > at && v.Covers:
			v.Why += "; but rule " + decides.Rule + " comes before it"
		}
	}
	if !decides.Names && !isFullName(r.Group) {
		decides.Why += "; no rule names this caller for " + r.Operation
		if r.Caller.Doubt != "" && q.caller.level == caller.LevelProcess {
			decides.Why += ": whether it is in a container is not known"
		}
	}
	return verdicts
}

func (p *Policy) explain(i int, r Request, q *query) Verdict {
	rule, written := &p.rules[i], &p.spec.Rules[i]
	v := Verdict{Rule: rule.name}
	if !coversAny(rule.pipes, q.group, q.version) {
		v.Why = fmt.Sprintf("pipes: none of %s covers this pipe", strings.Join(written.Pipes, ", "))
		return v
	}
	if !rule.coversOperation(q.group, q.operation) {
		v.Why = fmt.Sprintf("operations: %s is not among them", q.operation)
		return v
	}
	if _, ok := rule.holdsPaths(&q.paths); !ok {
		v.Why = "paths: " + rule.outside(q)
		return v
	}
	if why := rule.nameOutside(q); why != "" {
		v.Why = why
		return v
	}
	if q.caller.level == 0 {
		v.Why = "callers: nothing is known about this one"
		return v
	}
	var faults []string
	for j := range rule.callers {
		field := rule.callers[j].differs(&q.caller)
		switch {
		case field == "" && !v.Covers:
			v.Covers, v.Why = true, fmt.Sprintf("callers[%d] agrees", j)
		case field != "" && !v.Covers:
			faults = append(faults, fmt.Sprintf("callers[%d]: %s", j, rule.callers[j].difference(field, written.caller(j), r.Caller, &q.caller)))
		}
		v.Names = v.Names || field == "" && rule.names(q, j)
	}
	if !v.Covers {
		v.Why = strings.Join(faults, "; ")
	}
	return v
}

// difference says in words what the pattern asks for and what the caller has.
func (p *callerPattern) difference(field string, want CallerPattern, have caller.Caller, folded *folded) string {
	text := func(want, have string) string {
		if have == "" {
			return fmt.Sprintf("%s is not known, and must be %q", field, want)
		}
		return fmt.Sprintf("%s is %q, not %q", field, have, want)
	}
	switch field {
	case "assurance":
		return fmt.Sprintf("assurance is %q, and must be %s", have.Assurance, []string{"", "sid", "process", "pod"}[p.least])
	case "user":
		return text(want.User, have.User.SID)
	case "exe":
		return text(want.Exe, have.Process.Exe)
	case "namespace":
		return text(p.namespace, have.Pod.Namespace)
	case "serviceAccount":
		return text(strings.Join(p.accounts, ", "), folded.account)
	case "container":
		return text(want.Container, have.Container.Name)
	case "image":
		return text(want.Image, have.Container.Image)
	case "hostProcess":
		return fmt.Sprintf("hostProcess is %v, not %v", have.Container.HostProcess, *p.hostProcess)
	}
	return "no valid token was shown"
}
