package policyset

import (
	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// pipePolicy puts a spec into admission's terms. Fields that the API server would have given their defaults, and that a
// file left out, get the same ones here.
func pipePolicy(spec v1alpha1.PipePolicySpec) admission.PipePolicy {
	p := admission.PipePolicy{
		Pipes:       make([]string, len(spec.Pipes)),
		Action:      admission.Action(spec.Admission.Action),
		Requirement: admission.Requirement(spec.Admission.Requirement),
		Subjects:    make([]access.Subject, len(spec.Subjects)),
	}
	if p.Action == "" {
		p.Action = admission.ActionDeny
	}
	if p.Requirement == "" {
		p.Requirement = admission.AllowedNamespace
	}
	for i, pattern := range spec.Pipes {
		p.Pipes[i] = string(pattern)
	}
	for i, s := range spec.Subjects {
		p.Subjects[i] = access.Subject{
			Name:            s.Name,
			Namespace:       s.Namespace,
			ServiceAccounts: s.ServiceAccounts,
			Containers:      s.Containers,
			Images:          s.Images,
			Owner:           s.Owner,
			Reason:          s.Reason,
		}
		if s.ExpiresAt != nil {
			p.Subjects[i].ExpiresAt = s.ExpiresAt.UTC()
		}
	}
	return p
}
