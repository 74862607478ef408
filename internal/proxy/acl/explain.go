package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Verdict is what one rule says to a call.
type Verdict struct {
	Rule    string
	Covers  bool   // the rule would allow the call if no other did before it
	Decides bool   // it is the first that does
	Names   bool   // it names the caller for the call, see access.Decision.Named
	Why     string // which caller of the rule agrees, or what the first thing is that does not
}

// Explain asks one rule after the other, in their order. It is what Decide comes to without looking anything up.
func (p *Policy) Explain(c access.Call) []Verdict {
	verdicts := make([]Verdict, len(p.rules))
	at := -1 // the one that decides
	for i := range p.rules {
		verdicts[i] = p.explain(i, c)
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
			v.Why += "; but rule " + decides.Rule + " names this caller for " + c.Operation
		case i > at && v.Covers:
			v.Why += "; but rule " + decides.Rule + " comes before it"
		}
	}
	if !decides.Names && !access.IsFullName(c.Group) {
		decides.Why += "; no rule names this caller for " + c.Operation
		if c.Caller.Doubt != "" && c.Caller.Assurance.Level() == caller.LevelProcess {
			decides.Why += ": whether it is in a container is not known"
		}
	}
	return verdicts
}

func (p *Policy) explain(i int, c access.Call) Verdict {
	rule := &p.rules[i]
	s := rule.Against(c)
	v := Verdict{Rule: rule.Name, Covers: s.By >= 0, Names: s.Names, Why: s.Outside}
	switch {
	case !slices.ContainsFunc(rule.Pipes, func(p access.PipePattern) bool { return p.Covers(c.Group, c.Version) }):
		v.Why = fmt.Sprintf("pipes: none of %s covers this pipe", strings.Join(p.spec.Rules[i].Pipes, ", "))
	case v.Covers:
		v.Why = fmt.Sprintf("callers[%d] agrees", s.By)
	case v.Why == "" && c.Caller.Assurance.Level() == caller.LevelNone:
		v.Why = "callers: nothing is known about this one"
	case v.Why == "":
		faults := make([]string, len(s.Differs))
		for j, field := range s.Differs {
			faults[j] = fmt.Sprintf("callers[%d]: %s", j, difference(field, &rule.Callers[j], p.spec.Rules[i].Callers[j], c.Caller))
		}
		v.Why = strings.Join(faults, "; ")
	}
	return v
}

// difference says in words what the pattern asks for and what the caller has.
func difference(field access.Field, p *access.Pattern, want CallerPattern, have caller.Caller) string {
	text := func(want, have string) string {
		if have == "" {
			return fmt.Sprintf("%s is not known, and must be %q", field, want)
		}
		return fmt.Sprintf("%s is %q, not %q", field, have, want)
	}
	switch field {
	case access.FieldAssurance:
		return fmt.Sprintf("assurance is %q, and must be %s", have.Assurance, []string{"", "sid", "process", "pod"}[p.Least])
	case access.FieldUser:
		return text(want.User, have.User.SID)
	case access.FieldExe:
		return text(want.Exe, have.Process.Exe)
	case access.FieldNamespace:
		return text(p.Namespace, have.Pod.Namespace)
	case access.FieldServiceAccount:
		return text(strings.Join(p.Accounts, ", "), have.Pod.ServiceAccount)
	case access.FieldContainer:
		return text(want.Container, have.Container.Name)
	case access.FieldImage:
		return text(want.Image, have.Container.Image)
	case access.FieldHostProcess:
		return fmt.Sprintf("hostProcess is %v, not %v", have.Container.HostProcess, *p.HostProcess)
	}
	return "no valid token was shown"
}
