package floor

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// Object is one object of a floor.
type Object interface {
	metav1.Object
	runtime.Object
}

// Objects are all of them, in the order in which they are written: a binding without its policy does nothing.
func (f *Floor) Objects() (all []Object) {
	for i := range f.Policies {
		all = append(all, &f.Policies[i])
	}
	for i := range f.Bindings {
		all = append(all, &f.Bindings[i])
	}
	return all
}

// Empty are objects with the kinds and names of those of a floor, bindings first, in the order in which they are removed.
func Empty(name string) (all []Object) {
	for _, name := range Names(name) {
		b := &admissionv1.ValidatingAdmissionPolicyBinding{TypeMeta: bindingType}
		b.Name = name
		all = append(all, b)
	}
	for _, name := range Names(name) {
		p := &admissionv1.ValidatingAdmissionPolicy{TypeMeta: policyType}
		p.Name = name
		all = append(all, p)
	}
	return all
}

var (
	policyType  = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"}
	bindingType = metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"}
)

// EmptyLike is an object of the same kind with nothing in it.
func EmptyLike(o Object) Object {
	if _, ok := o.(*admissionv1.ValidatingAdmissionPolicyBinding); ok {
		return &admissionv1.ValidatingAdmissionPolicyBinding{TypeMeta: bindingType}
	}
	return &admissionv1.ValidatingAdmissionPolicy{TypeMeta: policyType}
}

// SameSpec says whether two objects of one kind decide alike. Those of a floor have every field that the API server would give a default, so that no addition goes unseen.
func SameSpec(a, b Object) bool {
	switch a := a.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		b, ok := b.(*admissionv1.ValidatingAdmissionPolicy)
		return ok && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		b, ok := b.(*admissionv1.ValidatingAdmissionPolicyBinding)
		return ok && equality.Semantic.DeepEqual(a.Spec, b.Spec)
	}
	return false
}

// Closed is a floor for policies that are too many to be said: no pod may have any pipe, nor what the parameters refuse of the host.
func Closed(o Options) (*Floor, error) {
	p := o.Policies.Parameters
	p.GuardedPipes, p.Requirement, p.Action = []string{"*"}, admission.AllowedNamespace, admission.ActionDeny
	p.AllowedNamespaces, p.HostProcessAllowed, p.PipePolicies = nil, nil, nil
	o.Policies = admission.Policies{Parameters: p}
	return New(o)
}
