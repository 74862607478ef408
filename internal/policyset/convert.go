package policyset

import (
	"cmp"

	"k8s.io/utils/ptr"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// accessPolicy puts an object into the words of both ends. Its lists of pipes and subjects are its own.
func accessPolicy(p *v1alpha1.PipePolicy) access.Policy {
	out := access.Policy{
		Name: p.Name, Pipes: make([]string, len(p.Spec.Pipes)), LogOnly: p.Spec.Node.Action == v1alpha1.NodeLogOnly,
		Subjects: make([]access.Subject, len(p.Spec.Subjects)),
	}
	for i, pattern := range p.Spec.Pipes {
		out.Pipes[i] = string(pattern)
	}
	for i, s := range p.Spec.Subjects {
		out.Subjects[i] = access.Subject{
			Name: s.Name, Namespace: s.Namespace, ServiceAccounts: s.ServiceAccounts, Containers: s.Containers, Images: s.Images, Owner: s.Owner, Reason: s.Reason,
			HostPaths: s.HostPaths, Permission: permission(p.Spec.Node, s.Node),
		}
		if s.HostProcess != nil {
			out.Subjects[i].HostProcess = &access.HostProcess{RunAsUserNames: s.HostProcess.RunAsUserNames}
		}
		if s.Process != nil {
			out.Subjects[i].Account, out.Subjects[i].Program = s.Process.Account, s.Process.Program
		}
		if s.ExpiresAt != nil {
			out.Subjects[i].ExpiresAt = s.ExpiresAt.UTC()
		}
	}
	return out
}

// permission is what a subject says of itself, and of what it does not, the policy.
func permission(of v1alpha1.NodeRules, own v1alpha1.SubjectRules) access.Permission {
	out := access.Permission{
		Methods: own.Methods, PathPrefixes: own.PathPrefixes, RequireToken: of.RequireToken || own.RequireToken, Shares: own.Shares, Services: own.Services,
		Limits: access.Limits{Connections: int(ptr.Deref(own.Limits.Connections, 0)), CallsPerSecond: int(ptr.Deref(own.Limits.CallsPerSecond, 0)), Burst: int(ptr.Deref(own.Limits.Burst, 0))},
	}
	if len(out.Methods) == 0 {
		out.Methods = of.Methods
	}
	if len(out.PathPrefixes) == 0 {
		out.PathPrefixes = of.PathPrefixes
	}
	for _, name := range own.Permits {
		out.Permits = append(out.Permits, string(name))
	}
	return out
}

// pipePolicy puts an object into admission's terms. Fields that the API server would have given their defaults, and that a
// file left out, get the same ones here.
func pipePolicy(p *v1alpha1.PipePolicy) admission.PipePolicy {
	a := accessPolicy(p)
	return admission.PipePolicy{
		Pipes: a.Pipes, Subjects: a.Subjects, LogOnly: a.LogOnly,
		Action:      cmp.Or(admission.Action(p.Spec.Admission.Action), admission.ActionDeny),
		Requirement: cmp.Or(admission.Requirement(p.Spec.Admission.Requirement), admission.AllowedNamespace),
	}
}
