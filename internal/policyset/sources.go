package policyset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Sources are everything that decides together.
type Sources struct {
	// Base is the built-in policy, or that of a directory.
	Base policy.Modules
	// Parameters go with the base policy.
	Parameters admission.Parameters
	// PipePolicies and PolicyModules are the cluster's.
	PipePolicies  []v1alpha1.PipePolicy
	PolicyModules []v1alpha1.PolicyModule
}

// Assemble makes one set of modules of the sources, ready to be activated. Equal sources give equal modules, in whatever
// order the objects come. The error joins an *ObjectError for each object that is unfit.
func (s Sources) Assemble() (policy.Modules, error) {
	var faults []error
	fault := func(kind, name string, err error) {
		faults = append(faults, &ObjectError{Kind: kind, Name: name, Err: err})
	}
	pipes := make(map[string]admission.PipePolicy, len(s.PipePolicies))
	for i := range s.PipePolicies {
		p := &s.PipePolicies[i]
		if _, ok := pipes[p.Name]; ok {
			fault(KindPipePolicy, p.Name, errTwice)
			continue
		}
		if err := CheckPipePolicy(p).ToAggregate(); err != nil {
			fault(KindPipePolicy, p.Name, err)
			continue
		}
		pipes[p.Name] = pipePolicy(p)
	}
	for name := range s.Base.Files {
		if _, _, ok := SplitFileName(name); ok {
			faults = append(faults, fmt.Errorf("base policy: %s: the directory %s is for PolicyModules", name, directory))
		}
	}
	added := map[string]string{}
	parameters, sum := make(map[string]any, len(s.PolicyModules)), parameterSum{}
	seen := make(map[string]bool, len(s.PolicyModules))
	for i := range s.PolicyModules {
		m := &s.PolicyModules[i]
		if seen[m.Name] {
			fault(KindPolicyModule, m.Name, errTwice)
			continue
		}
		seen[m.Name] = true
		if err := CheckPolicyModule(m).ToAggregate(); err != nil {
			fault(KindPolicyModule, m.Name, err)
			continue
		}
		for _, f := range m.Spec.Modules {
			added[FileName(m.Name, f.Name)] = f.Rego
		}
		value, err := sum.add(m.Spec.Parameters)
		if err != nil {
			fault(KindPolicyModule, m.Name, err)
			continue
		}
		parameters[m.Name] = value
	}
	if err := sum.check(); err != nil {
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return policy.Modules{}, err
	}
	all := admission.Policies{Parameters: s.Parameters, PipePolicies: pipes, ModuleParameters: parameters}
	base, err := admission.Policies{Parameters: s.Parameters}.Bind(policy.Modules{Files: s.Base.Files})
	if err != nil {
		return policy.Modules{}, err
	}
	files := s.Base.WithoutTests()
	maps.Copy(files, added)
	modules, err := all.Bind(policy.Modules{Files: files})
	modules.Base, modules.Owner = &base, ownerOf
	return modules, err
}

// Policies are what the sources say beside Rego and the parameters of PolicyModules, in admission's terms. The objects are ones that Assemble takes.
func (s Sources) Policies() admission.Policies {
	out := admission.Policies{Parameters: s.Parameters, PipePolicies: make(map[string]admission.PipePolicy, len(s.PipePolicies))}
	for i := range s.PipePolicies {
		out.PipePolicies[s.PipePolicies[i].Name] = pipePolicy(&s.PipePolicies[i])
	}
	return out
}

// AccessPolicies are the PipePolicies as both ends read them, sorted by name. Those of the parameters are called "parameters/" and their name.
func (s Sources) AccessPolicies() []access.Policy {
	out := s.Parameters.NodePolicies()
	for i := range s.PipePolicies {
		out = append(out, accessPolicy(&s.PipePolicies[i]))
	}
	slices.SortFunc(out, func(a, b access.Policy) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Decides reports whether an object of the cluster decides: one that is being deleted does not.
func Decides(o metav1.Object) bool { return o.GetDeletionTimestamp() == nil }

// Kinds of policy objects.
const (
	KindPipePolicy   = "PipePolicy"
	KindPolicyModule = "PolicyModule"
)

var errTwice = errors.New("the name occurs twice")

// ObjectError is why a policy object cannot be taken.
type ObjectError struct {
	Kind, Name string
	Err        error
}

// Error names the object and the reason.
func (e *ObjectError) Error() string { return fmt.Sprintf("%s %q: %v", e.Kind, e.Name, e.Err) }

// Unwrap returns the reason.
func (e *ObjectError) Unwrap() error { return e.Err }
