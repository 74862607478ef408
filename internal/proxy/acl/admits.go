package acl

import "github.com/pipeguard/pipeguard/internal/core/caller"

// Admits says whether the list could allow the caller any call on a pipe: the pipe is in mode LogOnly, or a rule for it names the
// caller. A caller that is not admitted is a stranger to the pipe. Every call of a stranger is denied, so a server may bound what
// strangers use up, together and before it has read their requests, without refusing a call that Decide would allow.
func (p *Policy) Admits(group, version string, who caller.Caller) bool {
	if p.mode(group, version) == LogOnly {
		return true
	}
	_, ok := p.find(&query{group: group, version: version, caller: foldCaller(&who), goal: goalCaller})
	return ok
}
