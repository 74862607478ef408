package activerules

import (
	"errors"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy"
)

var errNotLive = errors.New("no bundle decides yet")

// denyAll returns the rules of a node without a valid bundle, with the reason that callers and records see.
func (s *Set) denyAll(err error) *proxy.Rules {
	p := &audit.Policy{Name: BundlePolicy, Revision: "none"}
	if last := s.last.Load(); last != nil { // what decided last, and does not any more
		*p = *last.rules.Policy
	}
	return &proxy.Rules{List: refusal{"this node has no valid bundle of policies: " + err.Error()}, Policy: p}
}

// refusal is an access list that allows nothing, in any mode.
type refusal struct{ reason string }

// Decide implements proxy.List.
func (r refusal) Decide(access.Call) access.Decision {
	return access.Decision{Effect: access.Deny, Mode: access.Enforce, Reason: r.reason}
}

// Connections implements proxy.List.
func (refusal) Connections(string, string, caller.Caller) int { return 0 }

// Admits implements proxy.List.
func (refusal) Admits(string, string, caller.Caller) bool { return false }

// Names implements proxy.List.
func (refusal) Names(string, string, string) bool { return false }
