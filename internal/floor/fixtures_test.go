package floor

import (
	"fmt"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// many are policies with so many subjects, each in a namespace of its own.
func many(subjects int) admission.Policies {
	p := admission.Policies{Parameters: admission.DefaultParameters(), PipePolicies: map[string]admission.PipePolicy{}}
	for i := 0; i < subjects; i += 250 {
		policy := admission.PipePolicy{Pipes: []string{"csi-proxy-disk-v1"}}
		for j := range min(250, subjects-i) {
			policy.Subjects = append(policy.Subjects, access.Subject{Name: fmt.Sprintf("s%d", j), Namespace: fmt.Sprintf("n%d", i+j), ServiceAccounts: []string{"driver"}, Images: []string{"registry.example/driver*"}})
		}
		p.PipePolicies[fmt.Sprintf("p%d", i)] = policy
	}
	return p
}
