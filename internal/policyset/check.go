package policyset

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// CheckPipePolicy finds what is wrong with a PipePolicy beyond what every policy must keep. The CRD's schema checks the
// same at the API server; objects in files, or stored under another schema, have not met it.
func CheckPipePolicy(p *v1alpha1.PipePolicy) field.ErrorList {
	var faults field.ErrorList
	spec := field.NewPath("spec")
	if p.Name == "" {
		faults = append(faults, field.Required(field.NewPath("metadata", "name"), "a policy is named"))
	}
	if err := pipePolicy(p.Spec).Validate(); err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			faults = append(faults, field.Invalid(spec, field.OmitValueType{}, line))
		}
	}
	switch p.Spec.Node.Action {
	case "", v1alpha1.NodeEnforce, v1alpha1.NodeLogOnly:
	default:
		faults = append(faults, field.NotSupported(spec.Child("node", "action"), p.Spec.Node.Action,
			[]v1alpha1.NodeAction{v1alpha1.NodeEnforce, v1alpha1.NodeLogOnly}))
	}
	for i, s := range p.Spec.Subjects {
		at := spec.Child("subjects").Index(i).Child("expiresAt")
		switch {
		case s.ExpiresAt == nil:
		case s.ExpiresAt.IsZero(): // elsewhere a time that is not set means that there is no end
			faults = append(faults, field.Invalid(at, s.ExpiresAt.Format(time.RFC3339), "not the end of a permission; leave it out if there is none"))
		case s.ExpiresAt.Year() > maxYear:
			faults = append(faults, field.Invalid(at, s.ExpiresAt.Format(time.RFC3339), "a permission that ends after the year 9999 does not end"))
		}
	}
	return faults
}

// maxYear is the last year that RFC 3339 can write; times are compared as text.
const maxYear = 9999

// regoFile is the form of a file's name, as in the CRD.
var regoFile = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*\.rego$`)

// CheckPolicyModule finds what is wrong with a PolicyModule before its Rego is looked at.
func CheckPolicyModule(m *v1alpha1.PolicyModule) field.ErrorList {
	var faults field.ErrorList
	modules := field.NewPath("spec", "modules")
	if m.Name == "" || strings.Contains(m.Name, "/") {
		faults = append(faults, field.Invalid(field.NewPath("metadata", "name"), m.Name, "not the name of an object"))
	}
	if len(m.Spec.Modules) == 0 {
		faults = append(faults, field.Required(modules, "at least one file"))
	}
	if !slices.ContainsFunc(m.Spec.Modules, func(f v1alpha1.RegoFile) bool { return strings.HasSuffix(f.Name, "_test.rego") }) {
		faults = append(faults, field.Required(modules, "at least one file of tests, whose name ends in _test.rego: Rego that nothing tests does not decide"))
	}
	seen := map[string]bool{}
	for i, f := range m.Spec.Modules {
		at := modules.Index(i).Child("name")
		switch {
		case !regoFile.MatchString(f.Name):
			faults = append(faults, field.Invalid(at, f.Name, "want letters, digits, - and _, and .rego at the end"))
		case seen[f.Name]:
			faults = append(faults, field.Duplicate(at, f.Name))
		}
		seen[f.Name] = true
	}
	return faults
}
