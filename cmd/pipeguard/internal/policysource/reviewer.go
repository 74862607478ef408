package policysource

import (
	"context"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Reviewer activates policies of admission as the webhook would: they must compile, pass their tests and hold the invariants. namespaces
// knows the labels of namespaces; nil means that they have none.
func (s Sources) Reviewer(ctx context.Context, namespaces admission.NamespaceLabels) (*admission.Reviewer, policy.Snapshot, error) {
	engine, err := policy.New(policy.Options{BaseTested: s.IsBuiltIn})
	if err != nil {
		return nil, policy.Snapshot{}, err
	}
	active, err := engine.Activate(ctx, s.Modules)
	if err != nil {
		return nil, policy.Snapshot{}, err
	}
	reviewer, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine, Namespaces: namespaces})
	return reviewer, active, err
}
