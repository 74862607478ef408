package acl

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// RuleCaller is a caller of a rule, as it is written.
type RuleCaller struct {
	Rule   string
	Caller CallerPattern
}

// Naming returns the callers that rules name for an operation on some pipe of a group, in the order of the rules, and those
// that rules allow it there and no rule names. What else a rule asks for is not looked at.
func (p *Policy) Naming(group, operation string) (named, unnamed []RuleCaller) {
	known := map[access.Name]bool{}
	for i := range p.rules {
		r := &p.rules[i]
		for j := range r.Callers {
			names := r.Callers[j].Names()
			if len(names) == 0 || !r.SpellsOut(group, operation) {
				continue
			}
			for _, name := range names {
				known[name] = true
			}
			named = append(named, RuleCaller{r.Name, p.spec.Rules[i].Callers[j]})
		}
	}
	for i := range p.rules {
		r := &p.rules[i]
		if !r.CoversOperation(group, operation) || !slices.ContainsFunc(r.Pipes, func(p access.PipePattern) bool { return p.Covers(group, p.Version) }) {
			continue
		}
		for j := range r.Callers {
			names := r.Callers[j].Names()
			if len(names) == 0 || slices.ContainsFunc(names, func(name access.Name) bool { return !known[name] }) {
				unnamed = append(unnamed, RuleCaller{r.Name, p.spec.Rules[i].Callers[j]})
			}
		}
	}
	return named, unnamed
}
