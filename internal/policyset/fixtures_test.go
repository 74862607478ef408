package policyset

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
	builtin "github.com/pipeguard/pipeguard/policies"
)

// sources are the built-in policy and its defaults, with the objects given.
func sources(t *testing.T, objects ...any) Sources {
	t.Helper()
	base, err := policy.LoadFS(builtin.FS())
	if err != nil {
		t.Fatal(err)
	}
	s := Sources{Base: base, Parameters: admission.DefaultParameters()}
	for _, o := range objects {
		switch o := o.(type) {
		case v1alpha1.PipePolicy:
			s.PipePolicies = append(s.PipePolicies, o)
		case v1alpha1.PolicyModule:
			s.PolicyModules = append(s.PolicyModules, o)
		default:
			t.Fatalf("%T is no policy object", o)
		}
	}
	return s
}

func newTestValidator(t *testing.T) *Validator {
	t.Helper()
	v, err := NewValidator()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func try(t *testing.T, s Sources) error {
	t.Helper()
	return newTestValidator(t).Validate(t.Context(), s)
}

// pipes is a PipePolicy for one pipe and one subject.
func pipes(name string, change ...func(*v1alpha1.PipePolicySpec)) v1alpha1.PipePolicy {
	p := v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.PipePolicySpec{
		Pipes:     []v1alpha1.PipePattern{"csi-proxy-disk-*"},
		Admission: v1alpha1.AdmissionRules{Action: v1alpha1.ActionDeny, Requirement: v1alpha1.RequireSubject},
		Subjects:  []v1alpha1.Subject{{Name: "node", Namespace: "kube-system", ServiceAccounts: []string{"csi-azuredisk-node-sa"}}},
	}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

// module is a PolicyModule of files that alternate name and text.
func module(name string, files ...string) v1alpha1.PolicyModule {
	m := v1alpha1.PolicyModule{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i+1 < len(files); i += 2 {
		m.Spec.Modules = append(m.Spec.Modules, v1alpha1.RegoFile{Name: files[i], Rego: files[i+1]})
	}
	return m
}

const (
	goodRule = `package pipeguard.admission

# METADATA
# title: Images come from the registry of the house
# custom:
#   code: HOUSE1
#   severity: high
findings contains {"code": "HOUSE1", "effect": "deny", "field": mount.field} if {
	some mount in input.mounts
	mount.guarded == true
	not startswith(mount.image, "registry.example/")
}
`
	goodTest = `package house_test

import data.pipeguard.admission

test_another_registry_is_refused if {
	some finding in admission.findings with input as {"mounts": [{"guarded": true, "image": "evil/x", "field": "f"}]}
	finding.code == "HOUSE1"
}
`
	passingTest = `package open_test

test_that_holds if 1 == 1
`
	failingTest = `package house_test

test_that_does_not_hold if 1 == 2
`
	// opensAll gives everyone what the base policy asks for.
	opensAll = `package pipeguard.admission

namespace_suffices if true
`
)
