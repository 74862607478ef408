// Package v1alpha1 is the API by which a cluster's owner says who may use which guarded pipe, and by which Rego.
// It holds types alone and trusts nothing in them: what is stored is checked again before it decides.
//
// +kubebuilder:object:generate=true
// +groupName=pipeguard.dev
package v1alpha1
