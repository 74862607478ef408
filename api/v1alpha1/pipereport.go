package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// PipeReport lists what the background scan found in one namespace. The first is named "pipeguard"; findings that do not
// fit into one object are in "pipeguard-2" and so on, and each says how many there are.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Namespaced,shortName=prep,categories=pipeguard
// +kubebuilder:printcolumn:name="Deny",type=integer,JSONPath=`.summary.deny`
// +kubebuilder:printcolumn:name="Warn",type=integer,JSONPath=`.summary.warn`
// +kubebuilder:printcolumn:name="Audit",type=integer,JSONPath=`.summary.audit`
// +kubebuilder:printcolumn:name="Judged",type=integer,JSONPath=`.summary.judged`
// +kubebuilder:printcolumn:name="Part",type=string,JSONPath=`.part`
// +kubebuilder:printcolumn:name="Scanned",type=date,JSONPath=`.scannedAt`
type PipeReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Report            `json:",inline"`
}

// PipeReportList is a list of PipeReports.
//
// +kubebuilder:object:root=true
type PipeReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PipeReport `json:"items"`
}

// ClusterPipeReport lists what the background scan found in objects without a namespace: PersistentVolumes.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=cprep,categories=pipeguard
// +kubebuilder:printcolumn:name="Deny",type=integer,JSONPath=`.summary.deny`
// +kubebuilder:printcolumn:name="Warn",type=integer,JSONPath=`.summary.warn`
// +kubebuilder:printcolumn:name="Audit",type=integer,JSONPath=`.summary.audit`
// +kubebuilder:printcolumn:name="Judged",type=integer,JSONPath=`.summary.judged`
// +kubebuilder:printcolumn:name="Part",type=string,JSONPath=`.part`
// +kubebuilder:printcolumn:name="Scanned",type=date,JSONPath=`.scannedAt`
type ClusterPipeReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Report            `json:",inline"`
}

// ClusterPipeReportList is a list of ClusterPipeReports.
//
// +kubebuilder:object:root=true
type ClusterPipeReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterPipeReport `json:"items"`
}

// Report is the content of a report. Its shape follows the PolicyReport of the Kubernetes policy working group.
type Report struct {
	// Source is "pipeguard".
	Source string `json:"source"`
	// Revision is that of the policies that judged.
	Revision string `json:"revision"`
	// ScannedAt is when the judgement in this report last changed.
	ScannedAt metav1.Time `json:"scannedAt"`
	// Part is "1/1", or the number of this report and of how many there are.
	Part string `json:"part"`
	// Summary counts over all parts.
	Summary ReportSummary `json:"summary"`
	// Results are the findings, one for each object and finding.
	//
	// +listType=atomic
	// +optional
	Results []ReportResult `json:"results,omitempty"`
}

// ReportSummary counts the findings of a namespace.
type ReportSummary struct {
	// Judged objects, those without findings among them.
	Judged int32 `json:"judged"`
	// Deny counts findings for which the object would be refused if it were created now.
	Deny int32 `json:"deny"`
	// Warn counts findings that its author would be told of.
	Warn int32 `json:"warn"`
	// Audit counts findings that would be recorded.
	Audit int32 `json:"audit"`
	// Error counts objects that could not be judged. They would be refused.
	Error int32 `json:"error"`
}

// ReportResult is one finding about one object.
type ReportResult struct {
	// Rule is the code of the rule: PG001.
	Rule string `json:"rule"`
	// Effect is deny, warn, audit, or error for an object that could not be judged.
	Effect string `json:"effect"`
	// Severity is critical, high, medium or low, as the rule's METADATA says.
	//
	// +optional
	Severity string `json:"severity,omitempty"`
	// Subject is the object.
	Subject ReportSubject `json:"subject"`
	// Field is the path of what the finding is about in the object.
	//
	// +optional
	Field string `json:"field,omitempty"`
	// Message is for people.
	Message string `json:"message"`
	// Policies are the PipePolicies that govern the pipe.
	//
	// +listType=atomic
	// +optional
	Policies []string `json:"policies,omitempty"`
	// StaticPod is true for the mirror of a static pod: only its node can stop it.
	//
	// +optional
	StaticPod bool `json:"staticPod,omitempty"`
}

// ReportSubject names an object.
type ReportSubject struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// +optional
	Namespace string    `json:"namespace,omitempty"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
	// Controller is the object's controller as Kind/name, such as ReplicaSet/web-5d9.
	//
	// +optional
	Controller string `json:"controller,omitempty"`
}
