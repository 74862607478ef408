package acl

import (
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// spelling is an operation of a group, both spelled out.
type spelling struct{ group, operation string }

// callerName is by what a pattern names a caller.
type callerName struct{ user, exe, namespace, account, container string }

// names are those by which a pattern names its callers, if it says enough for that: a namespace with the service account, or with
// the container where service accounts cannot be learnt; or an account of the node with one program.
func (p *callerPattern) names() (names []callerName) {
	switch {
	case p.namespace != "" && len(p.accounts) > 0:
		for _, account := range p.accounts {
			names = append(names, callerName{namespace: p.namespace, account: account})
		}
	case p.namespace != "":
		for _, container := range p.containers {
			names = append(names, callerName{namespace: p.namespace, container: container})
		}
	case p.user != "" && p.exe != "" && !isExeDir(p.exe) && !p.needsPod():
		names = []callerName{{user: p.user, exe: p.exe}}
	}
	return names
}

// spellsOut says whether the rule has the operation by its name, and the group in a pattern of a pipe.
func (r *rule) spellsOut(group, operation string) bool {
	return isOperation(operation) && slices.Contains(r.operations, operation) &&
		slices.ContainsFunc(r.spelled, func(p pipePattern) bool { return p.group == group })
}

// names says whether the rule, which covers the call by one of its callers, names it by that one. A program in a pod or a
// container is no program of the node, nor is one of which that is in doubt.
func (r *rule) names(q *query, by int) bool {
	c := &r.callers[by]
	if !c.isName || strings.HasPrefix(q.operation, "/") || !slices.Contains(r.operations, q.operation) || !coversAny(r.spelled, q.group, q.version) {
		return false
	}
	if c.namespace != "" {
		return q.caller.level == caller.LevelPod
	}
	return q.caller.level == caller.LevelProcess && !q.caller.mayBeInside
}

// findNaming returns the first rule that covers the call and names its caller. It is looked for only where some rule names anybody for the operation.
func (p *Policy) findNaming(q *query) (rule int, ok bool) {
	if !p.spelled[spelling{q.group, q.operation}] {
		return 0, false
	}
	q.goal = goalNamed
	return p.find(q)
}

// spell adds what the rule names anybody for.
func (r *rule) spell(to map[spelling]bool) {
	if !slices.ContainsFunc(r.callers, func(c callerPattern) bool { return c.isName }) {
		return
	}
	for _, pipe := range r.spelled {
		for _, operation := range r.operations {
			if isOperation(operation) {
				to[spelling{pipe.group, operation}] = true
			}
		}
	}
}

// RuleCaller is a caller of a rule, as it is written.
type RuleCaller struct {
	Rule   string
	Caller CallerPattern
}

// Naming returns the callers that rules name for an operation on some pipe of a group, in the order of the rules, and those
// that rules allow it there and no rule names. What else a rule asks for is not looked at.
func (p *Policy) Naming(group, operation string) (named, unnamed []RuleCaller) {
	known := map[callerName]bool{}
	for i := range p.rules {
		r := &p.rules[i]
		for j := range r.callers {
			if !r.callers[j].isName || !r.spellsOut(group, operation) {
				continue
			}
			for _, name := range r.callers[j].names() {
				known[name] = true
			}
			named = append(named, RuleCaller{r.name, p.spec.Rules[i].caller(j)})
		}
	}
	for i := range p.rules {
		r := &p.rules[i]
		if !r.coversOperation(group, operation) || !slices.ContainsFunc(r.pipes, func(p pipePattern) bool { return p.covers(group, p.version) }) {
			continue
		}
		for j := range r.callers {
			names := r.callers[j].names()
			if len(names) == 0 || slices.ContainsFunc(names, func(name callerName) bool { return !known[name] }) {
				unnamed = append(unnamed, RuleCaller{r.name, p.spec.Rules[i].caller(j)})
			}
		}
	}
	return named, unnamed
}
