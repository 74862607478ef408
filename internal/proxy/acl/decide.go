package acl

import (
	"fmt"
)

// Decide answers a request: the first rule that covers pipe, operation and caller allows it, and nothing else does.
func (p *Policy) Decide(r Request) Decision {
	d := Decision{Effect: Deny, Mode: p.mode(r.Group, r.Version)}
	if isUnknown(r.Group, r.Operation) { // to let it pass without a rule would be to let anything pass
		d.Mode = Enforce
	}
	who, user, exe := level(r.Caller.Assurance), foldUser(r.Caller.User), foldExe(r.Caller.Exe)
	reached := 0 // how far the best rule went: 1 the pipe, 2 the operation too
	for i := range p.rules {
		rule := &p.rules[i]
		if !coversAny(rule.pipes, r.Group, r.Version) {
			continue
		}
		reached = max(reached, 1)
		if !rule.coversOperation(r.Group, r.Operation) {
			continue
		}
		reached = 2
		for j := range rule.callers {
			if rule.callers[j].covers(who, user, exe) {
				d.Allowed, d.Effect, d.Rule, d.Permits = true, Allow, rule.name, rule.permits
				d.Reason = "allowed by rule " + rule.name
				return d
			}
		}
	}
	d.Allowed = d.Mode == LogOnly
	switch {
	case reached == 2 && who == 0:
		d.Reason = "the caller is not identified"
	case reached == 2:
		d.Reason = fmt.Sprintf("no rule that allows %s here names this caller", r.Operation)
	case reached == 1:
		d.Reason = fmt.Sprintf("no rule for this pipe allows %s", r.Operation)
	default:
		d.Reason = "no rule names this pipe"
	}
	return d
}

// mode is LogOnly if a PipeMode says so and none says otherwise: of two that overlap the stricter holds.
func (p *Policy) mode(group, version string) Mode {
	mode := Enforce
	for _, m := range p.modes {
		if !m.pipe.covers(group, version) {
			continue
		}
		if m.mode == Enforce {
			return Enforce
		}
		mode = LogOnly
	}
	return mode
}

func coversAny(pipes []pipePattern, group, version string) bool {
	for _, pipe := range pipes {
		if pipe.covers(group, version) {
			return true
		}
	}
	return false
}
