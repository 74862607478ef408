package policyset

import (
	"cmp"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// accessPolicy puts an object into the words of both ends. Its lists of pipes and subjects are its own.
func accessPolicy(p *v1alpha1.PipePolicy) access.Policy {
	out := access.Policy{
		Name: p.Name, Pipes: make([]string, len(p.Spec.Pipes)), LogOnly: p.Spec.Node.Action == v1alpha1.NodeLogOnly,
		Methods: p.Spec.Node.Methods, PathPrefixes: p.Spec.Node.PathPrefixes, RequireToken: p.Spec.Node.RequireToken,
		Subjects: make([]access.Subject, len(p.Spec.Subjects)),
	}
	for i, pattern := range p.Spec.Pipes {
		out.Pipes[i] = string(pattern)
	}
	for i, s := range p.Spec.Subjects {
		out.Subjects[i] = access.Subject{
			Name: s.Name, Namespace: s.Namespace, ServiceAccounts: s.ServiceAccounts, Containers: s.Containers, Images: s.Images, Owner: s.Owner, Reason: s.Reason,
		}
		if s.ExpiresAt != nil {
			out.Subjects[i].ExpiresAt = s.ExpiresAt.UTC()
		}
	}
	return out
}

// pipePolicy puts an object into admission's terms. Fields that the API server would have given their defaults, and that a
// file left out, get the same ones here.
func pipePolicy(p *v1alpha1.PipePolicy) admission.PipePolicy {
	a := accessPolicy(p)
	return admission.PipePolicy{
		Pipes: a.Pipes, Subjects: a.Subjects,
		Action:      cmp.Or(admission.Action(p.Spec.Admission.Action), admission.ActionDeny),
		Requirement: cmp.Or(admission.Requirement(p.Spec.Admission.Requirement), admission.AllowedNamespace),
	}
}
