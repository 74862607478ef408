// Package v1alpha1 is the API in which cluster administrators define who may use which guarded pipe, and further rules in Rego.
// It holds types alone and trusts nothing in them: what is stored is checked again before it decides.
//
// +kubebuilder:object:generate=true
// +groupName=pipeguard.dev
package v1alpha1
