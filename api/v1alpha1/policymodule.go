package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PolicyModule adds Rego to the admission policy. Its modules decide only together with all others, and only if every
// test passes; until then the policies before it go on deciding.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pmod,categories=pipeguard
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Compiled",type=string,JSONPath=`.status.conditions[?(@.type=="Compiled")].status`
// +kubebuilder:printcolumn:name="Tests",type=string,JSONPath=`.status.conditions[?(@.type=="TestsPassed")].status`
// +kubebuilder:printcolumn:name="Enforced on",type=string,JSONPath=`.status.replicas.summary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
type PolicyModule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PolicyModuleSpec `json:"spec"`
	// +optional
	Status PolicyModuleStatus `json:"status,omitempty"`

	// Unknown are the paths of fields of the spec that were read and that this release does not have, as a later release's. What they
	// say would be passed over, so that the object must not decide. It is never written.
	Unknown string `json:"-"`
}

// PolicyModuleList is a list of PolicyModules.
//
// +kubebuilder:object:root=true
type PolicyModuleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PolicyModule `json:"items"`
}

// PolicyModuleSpec is Rego and its parameters.
type PolicyModuleSpec struct {
	// Modules are files of Rego. Those whose name ends in _test.rego hold tests and do not decide.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	Modules []RegoFile `json:"modules"`
	// Parameters are a JSON object of at most 256 KiB and 10,000 values, without null. Policies read them at
	// data.pipeguard.modules["the object's name"].
	//
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty"`
}

// RegoFile is one file of Rego.
type RegoFile struct {
	// Name of the file, ending in .rego; in _test.rego for tests.
	//
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_-]*\.rego$`
	Name string `json:"name"`
	// Rego is the text.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=262144
	Rego string `json:"rego"`
}

// PolicyModuleStatus is the status of a PolicyModule.
type PolicyModuleStatus struct {
	PolicyStatus `json:",inline"`

	// Problems are what keeps the module from deciding, with their places. The conditions say it as well.
	//
	// +kubebuilder:validation:MaxItems=50
	// +listType=atomic
	// +optional
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one reason why Rego cannot decide, and where it is.
type Problem struct {
	// File is the name of one of the object's modules.
	//
	// +optional
	File string `json:"file,omitempty"`
	// Line counts from 1; 0 means the whole file.
	//
	// +optional
	Line int32 `json:"line,omitempty"`
	// Column counts from 1; 0 means the whole line.
	//
	// +optional
	Column int32 `json:"column,omitempty"`
	// Code is the compiler's name for the problem, or "test" for a test that failed.
	Code string `json:"code"`
	// Message is for people.
	Message string `json:"message"`
}
