package proxy

import (
	"context"
	"errors"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// Roles asks the cluster's RBAC about a service account. *token.Verifier is one.
type Roles interface {
	// Resolved is the identity of a caller who has sent no token, the zero value if it is not known well enough.
	Resolved(token.Facts) token.Identity
	// Authorize asks about a method of a pipe, named as in disk-v1. An error means no.
	Authorize(ctx context.Context, id token.Identity, pipe, method string, caller token.Facts) (token.Access, error)
}

// rolesPolicy is how records name the cluster's roles. Their revision is not known on a node.
var rolesPolicy = &audit.Policy{Name: "roles", Revision: "none"}

// Grant implements gate.Roles: it asks the cluster's roles about a call that the access list does not allow, on pipes where they may. They allow what
// the node's own list leaves out; where the cluster's policies decide, those have the last word.
func (r *request) Grant(ctx context.Context) (rule, reason string, ok bool) {
	p, facts, id := r.pipe(), r.stream.conn.facts(), r.token
	if id == (token.Identity{}) {
		id = p.roles.Resolved(facts)
	}
	granted, err := p.roles.Authorize(ctx, id, p.gv.String(), r.call.Operation.Name, facts)
	if err != nil {
		why := "they cannot be asked"
		if refusal, ok := errors.AsType[*token.Refusal](err); ok {
			why = string(refusal.Reason)
		}
		return "", ", nor do the cluster's roles allow it: " + why, false
	}
	reason = "the cluster's roles let the service account " + id.Namespace + "/" + id.ServiceAccount + " " + granted.Verb + " " + p.gv.String()
	if granted.Stale {
		reason += ", by what the API server said before it was away"
	}
	return "roles/" + granted.Verb, reason, true
}
