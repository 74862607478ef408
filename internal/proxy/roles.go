package proxy

import (
	"context"
	"errors"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// Roles asks the cluster's RBAC about a service account. *token.Verifier is one.
type Roles interface {
	// Resolved is the identity of a caller who has sent no token, the zero value if it is not known well enough.
	Resolved(token.Facts) token.Identity
	// Authorize asks about a method of a pipe, named as in disk-v1. An error means no.
	Authorize(ctx context.Context, id token.Identity, pipe, method string, caller token.Facts) (token.Access, error)
}

// byRoles is how records name the cluster's roles. Their revision is the cluster's to know.
var byRoles = &audit.Policy{Name: "roles", Revision: "none"}

// byRole asks the cluster's roles about a call that the access list does not allow, on pipes where they may. They allow what
// the node's own list leaves out, and name nobody; where the cluster's policies decide, those have the last word.
func (p *pipe) byRole(ctx context.Context, r *request, call *apiserver.Call, d access.Decision) (access.Decision, *audit.Policy) {
	if p.roles == nil || !r.rules.HasRoles || call.Request == nil || d.Effect == access.Allow {
		return d, r.rules.Policy
	}
	facts := r.stream.conn.facts()
	id := r.token
	if id == (token.Identity{}) {
		id = p.roles.Resolved(facts)
	}
	granted, err := p.roles.Authorize(ctx, id, p.gv.String(), call.Operation.Name, facts)
	if err != nil {
		why := "they cannot be asked"
		if refusal, ok := errors.AsType[*token.Refusal](err); ok {
			why = string(refusal.Reason)
		}
		d.Reason += ", nor do the cluster's roles allow it: " + why
		return d, r.rules.Policy
	}
	d.Allowed, d.Effect, d.Rule, d.Permits, d.Services, d.Named = true, access.Allow, "roles/"+granted.Verb, nil, nil, false
	d.Reason = "the cluster's roles let the service account " + id.Namespace + "/" + id.ServiceAccount + " " + granted.Verb + " " + p.gv.String()
	if granted.Stale {
		d.Reason += ", by what the API server said before it was away"
	}
	return d, byRoles
}
