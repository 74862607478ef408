package acl

import "github.com/pipeguard/pipeguard/internal/core/caller"

// Connections returns how many connections to a pipe the caller may hold open: what the first rule for the pipe that names
// the caller and sets a number says, else what holds for all callers; 0 if neither does. Before a call it is not known
// which rule will decide, so operations and paths are not asked.
func (p *Policy) Connections(group, version string, who caller.Caller) int {
	q := query{group: group, version: version, caller: foldCaller(&who), goal: goalConnections}
	if i, ok := p.find(&q); ok {
		return p.rules[i].limits.Connections
	}
	return p.limits.Connections
}
