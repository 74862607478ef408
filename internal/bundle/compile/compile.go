package compile

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/bundle/rules"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Source is what a bundle is made of.
type Source struct {
	// PipePolicies are the cluster's, or those of files.
	PipePolicies []v1alpha1.PipePolicy
	// Modules are the Rego that judges calls on nodes; none leaves the nodes with what is built into them.
	Modules map[string]string
	// PolicyRevision is what admission calls these policies.
	PolicyRevision string
}

// Bundle returns the content of a bundle, without a revision, audience and times. Equal objects give equal content, in
// whatever order they and their lists are. An error joins a *policyset.ObjectError for each object that is unfit.
func Bundle(s Source) (bundle.Bundle, error) {
	document, err := Document(s.PipePolicies)
	if err != nil {
		return bundle.Bundle{}, err
	}
	text, err := json.Marshal(document)
	if err != nil {
		return bundle.Bundle{}, fmt.Errorf("encode the access list: %w", err)
	}
	return bundle.Bundle{PolicyRevision: s.PolicyRevision, Modules: s.Modules, ACL: text}, nil
}

var errTwice = errors.New("the name occurs twice")

// Document puts PipePolicies into the words of nodes, sorted by name. Subjects that have ended are kept: whether they
// have is for the node's clock to say, and the content must not change because time passes.
func Document(policies []v1alpha1.PipePolicy) (rules.Document, error) {
	out := rules.Document{Schema: rules.Schema, Policies: make([]rules.Policy, 0, len(policies))}
	seen := map[string]bool{}
	var faults []error
	for i := range policies {
		p := &policies[i]
		err := policyset.CheckPipePolicy(p).ToAggregate()
		var compiled rules.Policy
		switch {
		case seen[p.Name]:
			faults = append(faults, fault(p.Name, errTwice))
			continue
		case err != nil:
			faults = append(faults, fault(p.Name, err))
		default:
			compiled = policy(p)
			if err := (rules.Document{Schema: rules.Schema, Policies: []rules.Policy{compiled}}).Check(); err != nil {
				faults = append(faults, fault(p.Name, err))
			}
		}
		seen[p.Name] = true
		out.Policies = append(out.Policies, compiled)
	}
	if err := errors.Join(faults...); err != nil {
		return rules.Document{}, err
	}
	slices.SortFunc(out.Policies, func(a, b rules.Policy) int { return strings.Compare(a.Name, b.Name) })
	return out, out.Check()
}

func fault(name string, err error) error {
	return &policyset.ObjectError{Kind: policyset.KindPipePolicy, Name: name, Err: err}
}

func policy(p *v1alpha1.PipePolicy) rules.Policy {
	out := rules.Policy{
		Name:         p.Name,
		LogOnly:      p.Spec.Node.Action == v1alpha1.NodeLogOnly,
		Methods:      set(p.Spec.Node.Methods),
		PathPrefixes: set(p.Spec.Node.PathPrefixes),
		RequireToken: p.Spec.Node.RequireToken,
	}
	for _, pattern := range p.Spec.Pipes {
		out.Pipes = append(out.Pipes, strings.ToLower(string(pattern))) // of ASCII, as was checked
	}
	out.Pipes = set(out.Pipes)
	for _, s := range p.Spec.Subjects {
		subject := rules.Subject{
			Name: s.Name, Namespace: s.Namespace,
			ServiceAccounts: set(s.ServiceAccounts), Containers: set(s.Containers), Images: set(s.Images),
		}
		if s.ExpiresAt != nil { // parts of a second are cut off, so that the end is never late
			subject.ExpiresAt = s.ExpiresAt.UTC().Truncate(1e9)
		}
		out.Subjects = append(out.Subjects, subject)
	}
	slices.SortFunc(out.Subjects, func(a, b rules.Subject) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// set sorts a list and leaves out what it has twice.
func set(list []string) []string {
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}
