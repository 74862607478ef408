package policyset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// BundleSources are what a bundle for nodes is made of.
type BundleSources struct {
	// PipePolicies are the cluster's, or those of files.
	PipePolicies []v1alpha1.PipePolicy
	// Parameters are those that decide with them at admission. Their PipePolicies are in the bundle as "parameters/" and their name.
	Parameters admission.Parameters
	// Modules are the Rego that judges calls on nodes; none leaves the nodes with what is built into them.
	Modules map[string]string
	// PolicyRevision is what admission calls these policies.
	PolicyRevision string
}

// Bundle returns the content of a bundle, without a revision, audience and times. Equal objects give equal content, in
// whatever order they and their lists are. An error joins an *ObjectError for each object that is unfit.
func (s BundleSources) Bundle() (bundle.Bundle, error) {
	document, err := nodeDocument(s.PipePolicies, s.Parameters)
	if err != nil {
		return bundle.Bundle{}, err
	}
	text, err := json.Marshal(document)
	if err != nil {
		return bundle.Bundle{}, fmt.Errorf("encode the access list: %w", err)
	}
	return bundle.Bundle{PolicyRevision: s.PolicyRevision, Modules: s.Modules, ACL: text}, nil
}

// nodeDocument has the policies sorted by name. Subjects that have ended are kept: whether they have is for the node's clock to
// say, and the content must not change because time passes.
func nodeDocument(policies []v1alpha1.PipePolicy, parameters admission.Parameters) (access.Document, error) {
	out := access.Document{Schema: access.Schema, Policies: make([]access.Policy, 0, len(policies))}
	seen := map[string]bool{}
	var faults []error
	for i := range policies {
		p := &policies[i]
		one := sorted(accessPolicy(p))
		var err error
		if seen[p.Name] {
			err = errTwice
		} else if err = CheckPipePolicy(p).ToAggregate(); err == nil && len(one.Pipes) > 0 {
			err = access.Document{Schema: access.Schema, Policies: []access.Policy{one}}.Check()
		}
		if err != nil {
			faults = append(faults, &ObjectError{Kind: KindPipePolicy, Name: p.Name, Err: err})
		}
		seen[p.Name] = true
		if len(one.Pipes) > 0 { // else it is for admission alone
			out.Policies = append(out.Policies, one)
		}
	}
	if err := errors.Join(faults...); err != nil {
		return access.Document{}, err
	}
	for _, p := range parameters.NodePolicies() { // which were checked when they were read
		if len(p.Pipes) > 0 {
			out.Policies = append(out.Policies, sorted(p))
		}
	}
	slices.SortFunc(out.Policies, func(a, b access.Policy) int { return strings.Compare(a.Name, b.Name) })
	return out, out.Check()
}

// sorted is the same for equal policies, in whatever order their lists are. It leaves out what only admission asks for.
func sorted(p access.Policy) access.Policy {
	for i, pattern := range p.Pipes {
		p.Pipes[i] = strings.ToLower(pattern) // of ASCII, as is checked
	}
	p.Pipes = set(p.Pipes)
	for i := range p.Subjects {
		s := &p.Subjects[i]
		s.ServiceAccounts, s.Containers, s.Images = set(s.ServiceAccounts), set(s.Containers), set(s.Images)
		s.Methods, s.PathPrefixes = set(s.Methods), set(s.PathPrefixes)
		s.Permits, s.Shares, s.Services = set(s.Permits), set(s.Shares), set(s.Services)
		s.ExpiresAt, s.HostProcess, s.HostPaths = s.End(), nil, nil
	}
	slices.SortFunc(p.Subjects, func(a, b access.Subject) int { return strings.Compare(a.Name, b.Name) })
	return p
}

// set sorts a list and leaves out what it has twice.
func set(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}
