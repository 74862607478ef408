package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GuardedNode is the report of the node component: which bundle of policies its node enforces, which pipes it serves, and
// what is wrong. It has the name of the Node. It is as trustworthy as the node: an attacker who controls a node controls
// its report, and no other.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=gnode,categories=pipeguard
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.state`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.bundle.pool`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.bundle.revision`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.version`
// +kubebuilder:printcolumn:name="Reported",type=date,JSONPath=`.reportedAt`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Policy",type=string,priority=1,JSONPath=`.bundle.policyRevision`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.message`
// +kubebuilder:printcolumn:name="Pipes",type=string,priority=1,JSONPath=`.pipes`
type GuardedNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	NodeReport        `json:",inline"`
}

// GuardedNodeList is a list of GuardedNodes.
//
// +kubebuilder:object:root=true
type GuardedNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GuardedNode `json:"items"`
}

// NodeState is the kind of policy that a node enforces.
//
// +kubebuilder:validation:Enum=Guarding;Denying;Local;Unreachable
type NodeState string

// States of nodes.
const (
	// NodeGuarding nodes decide by a bundle.
	NodeGuarding NodeState = "Guarding"
	// NodeDenying nodes require a bundle and have no valid one, so they deny every call.
	NodeDenying NodeState = "Denying"
	// NodeLocal nodes decide by their own configuration alone: PipePolicies do not reach them.
	NodeLocal NodeState = "Local"
	// NodeUnreachable nodes have a service that does not answer: it is not installed, does not run, or opens no address.
	NodeUnreachable NodeState = "Unreachable"
)

// NodeReport is a node's report of itself.
type NodeReport struct {
	// ReportedAt is the time of the report, by the node's clock. It is repeated every five minutes.
	ReportedAt metav1.Time `json:"reportedAt"`
	// State is Guarding (a bundle decides), Denying (there is no valid bundle, and every call is denied), Local (the node's
	// own configuration decides, and PipePolicies do not) or Unreachable (the service does not answer).
	State NodeState `json:"state"`
	// Version of the service.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// Message says what is wrong; empty if no fault is known.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Message string `json:"message,omitempty"`
	// ACLRevision is the hash of the access list in the node's own configuration.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	ACLRevision string `json:"aclRevision,omitempty"`
	// AuditKey is the verifier key of the node's audit log, NAME+HASH+BASE64. A witness that trusts on first use pins it.
	//
	// +kubebuilder:validation:MaxLength=384
	// +optional
	AuditKey string `json:"auditKey,omitempty"`
	// Schemas are the formats of bundles and access lists that the service can read. A service without the list is an earlier
	// release.
	//
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9./-]+$`
	// +listType=atomic
	// +optional
	Schemas []string `json:"schemas,omitempty"`
	// Pipes are the names of the pipes that the service serves, in lower case. A report without the list does not say which: the
	// service does not answer, or is an earlier release. Pipes whose names cannot be the name of a label are left out.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$`
	// +listType=set
	// +optional
	Pipes []string `json:"pipes,omitzero"`
	// Bundle is the node's bundle of policies.
	//
	// +optional
	Bundle *NodeBundle `json:"bundle,omitempty"`
}

// NodeBundle is the bundle by which a node decides, or what keeps it from having one.
type NodeBundle struct {
	// Pool is the node pool that the node belongs to by its configuration.
	//
	// +kubebuilder:validation:MaxLength=63
	Pool string `json:"pool"`
	// Revision is the number of the bundle that was activated last; 0 if there was none.
	//
	// +kubebuilder:validation:Minimum=0
	Revision int64 `json:"revision"`
	// PolicyRevision is the revision of the same policies at admission.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	PolicyRevision string `json:"policyRevision,omitempty"`
	// Key is the id of the key that signed it.
	//
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Key string `json:"key,omitempty"`
	// IssuedAt is when it was made.
	//
	// +optional
	IssuedAt *metav1.Time `json:"issuedAt,omitempty"`
	// ExpiresAt is when it ends. A node that has received no other by then denies every call.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Invalid says why it permits nothing now: none, expired or not-yet.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Invalid string `json:"invalid,omitempty"`
	// Refused is why the node rejected the bundle that it was offered last, in a word such as signature or rollback.
	//
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Refused string `json:"refused,omitempty"`
}
