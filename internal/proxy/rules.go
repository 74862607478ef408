package proxy

import (
	"context"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/gate"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// List is an access list. *access.List is one.
type List interface {
	gate.List
	// Connections is how many connections to a pipe a caller may hold open; 0 sets no bound.
	Connections(group, version string, who caller.Caller) int
	// Admits says whether the list could allow the caller any call on a pipe.
	Admits(group, version string, who caller.Caller) bool
	// Names says whether a rule for the pipe has the method by its own name.
	Names(group, version, method string) bool
}

// RequestPolicy is asked about calls that the list has allowed. *requestpolicy.Evaluator is one.
type RequestPolicy interface {
	// Decide evaluates the policy for a call. If it fails to decide, it denies.
	Decide(ctx context.Context, call *apiserver.Call, s *requestpolicy.Circumstances) requestpolicy.Decision
}

// Rules decide about the calls of a pipe. They do not change: a new set of rules is another Rules.
type Rules struct {
	// List is asked first.
	List List
	// RequestPolicy is asked about what List allows. nil asks nothing more.
	RequestPolicy RequestPolicy
	// Policy names List in records, which share it.
	Policy *audit.Policy
	// HasRoles says that the cluster's roles may allow what List does not, on pipes that ask them.
	HasRoles bool
}

// Listed are the rules of an access list alone; nil denies every call.
func Listed(list *acl.Policy) *Rules {
	if list == nil {
		list = acl.DenyAll()
	}
	return &Rules{List: list, Policy: &audit.Policy{Name: "acl", Revision: list.Revision()}}
}

// closed are the rules of a pipe without any.
var closed = Listed(nil)

// now are the rules for a call that arrives now.
func (p *pipe) now() *Rules {
	if rules := p.rules(p.gv.Group, p.gv.Version); rules != nil && rules.List != nil {
		return rules
	}
	return closed
}
