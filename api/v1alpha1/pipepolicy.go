package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PipePolicy guards pipes and says who may use them. A pipe that one or more PipePolicies name is governed by them: a
// container may mount it if it is a subject of one of them, and the parameter allowedNamespaces no longer counts for it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=ppol,categories=pipeguard
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.spec.admission.action`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Enforced on",type=string,JSONPath=`.status.replicas.summary`
// +kubebuilder:printcolumn:name="Nodes",type=string,JSONPath=`.status.nodes.summary`
// +kubebuilder:printcolumn:name="Violations",type=integer,JSONPath=`.status.violations`
// +kubebuilder:printcolumn:name="Expired",type=integer,JSONPath=`.status.subjects.expired`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Pipes",type=string,priority=1,JSONPath=`.spec.pipes`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=1,JSONPath=`.status.revision`
type PipePolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PipePolicySpec `json:"spec"`
	// +optional
	Status PipePolicyStatus `json:"status,omitempty"`

	// Unknown are the paths of fields of the spec that were read and that this release does not have, as a later release's. What they
	// say would be passed over, so that the object must not decide. It is never written.
	Unknown string `json:"-"`
}

// PipePolicyList is a list of PipePolicies.
//
// +kubebuilder:object:root=true
type PipePolicyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PipePolicy `json:"items"`
}

// PipePolicySpec says which pipes are guarded and who may use them.
//
// +kubebuilder:validation:XValidation:rule="(has(self.pipes) && size(self.pipes) > 0) || (has(self.subjects) && self.subjects.exists(s, has(s.hostProcess) || has(s.hostPaths)))",message="name pipes, or a subject with hostProcess or hostPaths: the policy guards nothing"
// +kubebuilder:validation:XValidation:rule="!has(self.node) || !has(self.node.requireToken) || !self.node.requireToken || !has(self.subjects) || !self.subjects.exists(s, has(s.process))",message="no process of the node has a token: with requireToken nothing is permitted to it"
type PipePolicySpec struct {
	// Pipes are names of pipes, or beginnings of names that end in "*", in any case and without \\.\pipe\ in front.
	// Each is guarded, whether or not the parameter guardedPipes has it. The list may be omitted if a subject has hostProcess or hostPaths.
	//
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +optional
	Pipes []PipePattern `json:"pipes,omitempty"`
	// Admission is what the webhook does.
	//
	// +kubebuilder:default={}
	// +optional
	Admission AdmissionRules `json:"admission,omitzero"`
	// Node is what the proxies on the nodes do, in bundles that are signed for them. The fields of a subject take precedence.
	//
	// +kubebuilder:default={}
	// +optional
	Node NodeRules `json:"node,omitzero"`
	// Subjects may use the pipes. Without any, no pod and no process may.
	//
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	Subjects []Subject `json:"subjects,omitempty"`
}

// PipePattern is the name of a pipe, or the beginning of names followed by "*".
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._{}-]+\*?$`
type PipePattern string

// AdmissionAction is the consequence for an object that no policy permits.
//
// +kubebuilder:validation:Enum=Deny;Warn;Audit
type AdmissionAction string

// Actions, from the strictest to the most lenient. Of several policies that govern a pipe the strictest counts.
const (
	// ActionDeny refuses the object.
	ActionDeny AdmissionAction = "Deny"
	// ActionWarn lets it pass and tells its author.
	ActionWarn AdmissionAction = "Warn"
	// ActionAudit lets it pass and records it.
	ActionAudit AdmissionAction = "Audit"
)

// Requirement says what a container must have to mount a pipe.
//
// +kubebuilder:validation:Enum=AllowedNamespace;PrivilegedAndAllowedNamespace;PrivilegedOrAllowedNamespace
type Requirement string

// Requirements. "Allowed namespace" here means: to be a subject of the policy.
const (
	// RequireSubject asks that the container is a subject.
	RequireSubject Requirement = "AllowedNamespace"
	// RequireSubjectAndPrivileged asks for both.
	RequireSubjectAndPrivileged Requirement = "PrivilegedAndAllowedNamespace"
	// RequireSubjectOrPrivileged is content with either.
	RequireSubjectOrPrivileged Requirement = "PrivilegedOrAllowedNamespace"
)

// AdmissionRules is what the webhook does about the pipes of a policy.
type AdmissionRules struct {
	// Action is the consequence for an object that no policy permits: Deny, Warn or Audit. Of several policies that govern
	// a pipe, the strictest counts. A path that names no single pipe is refused whatever this says.
	//
	// +kubebuilder:default=Deny
	// +optional
	Action AdmissionAction `json:"action,omitempty"`
	// Requirement is what a container must have: AllowedNamespace (be a subject), PrivilegedAndAllowedNamespace (be a
	// subject and privileged) or PrivilegedOrAllowedNamespace (either; the weakest, because on Windows privileged has no
	// effect and the author of a pod can set it). Privileged alone counts only if every policy that governs the pipe says so.
	//
	// +kubebuilder:default=AllowedNamespace
	// +optional
	Requirement Requirement `json:"requirement,omitempty"`
}

// NodeAction reports whether the proxy on a node refuses what its rules do not permit.
//
// +kubebuilder:validation:Enum=Enforce;LogOnly
type NodeAction string

// Actions of the proxy on a node.
const (
	// NodeEnforce refuses what the rules do not permit.
	NodeEnforce NodeAction = "Enforce"
	// NodeLogOnly records it and lets it pass.
	NodeLogOnly NodeAction = "LogOnly"
)

// NodeRules is what the proxies on the nodes do about the pipes of a policy.
type NodeRules struct {
	// Action is Enforce, or LogOnly to record what would be refused and let it pass.
	//
	// +kubebuilder:default=Enforce
	// +optional
	Action NodeAction `json:"action,omitempty"`
	// Methods are the gRPC methods that may be called, by their names in the newest version; empty means all.
	//
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z]+$`
	// +listType=set
	// +optional
	Methods []string `json:"methods,omitempty"`
	// PathPrefixes are the directories of the node that requests may name; empty means the proxy's working directories.
	//
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	// +optional
	PathPrefixes []string `json:"pathPrefixes,omitempty"`
	// RequireToken asks each caller for a token of its service account.
	//
	// +optional
	RequireToken bool `json:"requireToken,omitempty"`
}

// Subject may use the pipes of a policy: containers of pods in one namespace, narrowed by each list that is not empty, or a process of the node.
//
// +kubebuilder:validation:XValidation:rule="has(self.__namespace__) != has(self.process)",message="a subject is containers of a namespace or a process of the node: set namespace or process, and not both"
// +kubebuilder:validation:XValidation:rule="!has(self.process) || (!has(self.serviceAccounts) && !has(self.containers) && !has(self.images))",message="a process of the node is in no pod: leave serviceAccounts, containers and images out"
// +kubebuilder:validation:XValidation:rule="!has(self.process) || (!has(self.hostProcess) && !has(self.hostPaths))",message="a process of the node is in no pod: leave hostProcess and hostPaths out"
// +kubebuilder:validation:XValidation:rule="(!has(self.hostProcess) && !has(self.hostPaths)) || (has(self.serviceAccounts) && size(self.serviceAccounts) > 0)",message="a subject with hostProcess or hostPaths must name its service accounts: otherwise anyone who can create pods in the namespace controls the nodes"
// +kubebuilder:validation:XValidation:rule="!has(self.process) || !has(self.node) || !has(self.node.requireToken) || !self.node.requireToken",message="no process of the node has a token: with requireToken nothing is permitted to it"
// +kubebuilder:validation:XValidation:rule="!has(self.expiresAt) || (has(self.owner) && has(self.reason))",message="a subject that expires is an exception: name its owner and reason"
type Subject struct {
	// Name tells the subjects of a policy apart in messages, status and metrics.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name string `json:"name"`
	// Namespace of the pods. It is needed unless process is set.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Process makes the subject a process of the node in place of containers. It mounts nothing, so admission does not ask for it.
	//
	// +optional
	Process *NodeProcess `json:"process,omitempty"`
	// ServiceAccounts of the pods, by their exact names. An omitted list permits every account of the namespace, and with it
	// everyone who can create pods there.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +kubebuilder:validation:items:XValidation:rule="!self.contains('*')",message="names are exact, so * matches none; leave the list out to permit any"
	// +listType=set
	// +optional
	ServiceAccounts []string `json:"serviceAccounts,omitempty"`
	// Containers are exact names of containers and init containers; at admission a list permits no ephemeral container. An omitted list permits any.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:items:XValidation:rule="!self.contains('*')",message="names are exact, so * matches none; leave the list out to permit any"
	// +listType=set
	// +optional
	Containers []string `json:"containers,omitempty"`
	// Images of the containers, compared as written in the pod: names, digests, or beginnings of names that contain a "/" and end in "*" behind
	// "/", ":" or "@", or behind "." or "-" of a tag. A "*" behind a name means that name with any tag or digest, and what lies below it. Where there is a digest,
	// the tag says nothing: neither "reg/driver:v1.2" nor "reg/driver:v1.*" covers "reg/driver:v1.2@sha256:…", while "reg/driver:*" covers any tag, with a digest behind it too,
	// and "reg/driver@*" any digest without a tag. A digest alone means the image whatever its name. None means any.
	//
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	// +optional
	Images []string `json:"images,omitempty"`
	// HostProcess permits the subject's containers to be HostProcess containers, which run on the node itself and reach everything that their Windows account can
	// reach. For other HostProcess containers, the parameter hostProcess sets the action. Only admission asks for it.
	//
	// +optional
	HostProcess *HostProcess `json:"hostProcess,omitempty"`
	// HostPaths are directories of the node, each with its drive, which the subject's containers may mount with all in them, although the parameter
	// guardedHostPaths guards them or they are of equal power: C:\var\lib\kubelet\plugins\disk.csi.azure.com. A HostProcess container that the subject permits needs none.
	// For other containers, the parameters hostPaths and equalPower set the action. Only admission asks for it.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z]:[\\/][ !#-)+-9;=@-{}~]*$`
	// +listType=set
	// +optional
	HostPaths []string `json:"hostPaths,omitempty"`
	// Owner is responsible for an exception: a person, a team, an address.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Owner string `json:"owner,omitempty"`
	// Reason is why the exception exists.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Reason string `json:"reason,omitempty"`
	// ExpiresAt is when the permission ends, by itself. Pods that run then are reported, not stopped.
	//
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// Node is what the subject may do by the proxies on the nodes.
	//
	// +optional
	Node SubjectRules `json:"node,omitzero"`
}

// HostProcess is what a subject permits HostProcess containers.
type HostProcess struct {
	// RunAsUserNames are the Windows accounts that the containers may declare in windowsOptions.runAsUserName, in any case, such as
	// NT AUTHORITY\SYSTEM. If it is omitted, any account is permitted, and a container that declares none.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^([^\x00-\x1f\x7f"/\\:|<>+=;?*\[\],@]+\\)?[^\x00-\x1f\x7f"/\\:|<>+=;?*\[\],@]+$`
	// +listType=set
	// +optional
	RunAsUserNames []string `json:"runAsUserNames,omitempty"`
}

// NodeProcess is any process of a node that runs one program as one account: in a HostProcess container too, in another container never.
type NodeProcess struct {
	// Account is the SID that it runs as, such as S-1-5-18 for SYSTEM. Those of containers are no accounts of the node.
	//
	// +kubebuilder:validation:MaxLength=184
	// +kubebuilder:validation:Pattern=`^S-1(-(0|[1-9][0-9]{0,14})){2,16}$`
	Account string `json:"account"`
	// Program is the full path of its program, such as C:\Program Files\Example\driver.exe, in any case. There are no patterns: a directory could hold another program.
	//
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[A-Za-z]:\\[^*?"<>|:/]+$`
	Program string `json:"program"`
}

// SubjectRules is what a subject may do on the nodes. Admission does not ask for it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.permits) || !('NodeAccount' in self.permits) || (has(self.shares) && size(self.shares) > 0)",message="NodeAccount needs shares: without them the node would log on to any server with its own account"
type SubjectRules struct {
	// Methods are the gRPC methods that the subject may call, by their names in the newest version. If not set, those of the policy.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z]+$`
	// +listType=set
	// +optional
	Methods []string `json:"methods,omitempty"`
	// PathPrefixes are the directories of the node that its requests may name. If not set, those of the policy.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=3
	// +kubebuilder:validation:items:MaxLength=1024
	// +listType=set
	// +optional
	PathPrefixes []string `json:"pathPrefixes,omitempty"`
	// RequireToken asks it for a token of its service account, even if the policy does not.
	//
	// +optional
	RequireToken bool `json:"requireToken,omitempty"`
	// Permits are dangerous steps that no method includes: Reformat (to format a volume that has a file system), SystemDisk (to change
	// a disk or volume that the node runs from) and NodeAccount (to map a share without a user name, by the node's own account).
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +listType=set
	// +optional
	Permits []Permit `json:"permits,omitempty"`
	// Shares are the SMB shares that it may name: \\server\share, where a server may begin with "*." and a share end in "*". If not set, any.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=5
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=set
	// +optional
	Shares []string `json:"shares,omitempty"`
	// Services are the Windows services that it may name, by their short names. If not set, any, but a forced stop then reaches no other
	// service: dependents that it would stop must be named.
	//
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=set
	// +optional
	Services []string `json:"services,omitempty"`
	// Limits bound each container that is the subject.
	//
	// +optional
	Limits CallLimits `json:"limits,omitzero"`
}

// Permit is a dangerous step that no method includes.
//
// +kubebuilder:validation:Enum=Reformat;SystemDisk;NodeAccount
type Permit string

// CallLimits bound one container. What is not set is bounded by the configuration of the node.
//
// +kubebuilder:validation:XValidation:rule="!has(self.burst) || has(self.callsPerSecond)",message="burst bounds nothing without callsPerSecond"
type CallLimits struct {
	// Connections that it may hold open to one pipe.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	// +optional
	Connections *int32 `json:"connections,omitempty"`
	// CallsPerSecond on average.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	CallsPerSecond *int32 `json:"callsPerSecond,omitempty"`
	// Burst is how many calls may come at once after a pause; if not set, callsPerSecond.
	//
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Burst *int32 `json:"burst,omitempty"`
}

// PipePolicyStatus is the status of a PipePolicy.
type PipePolicyStatus struct {
	PolicyStatus `json:",inline"`

	// Violations is the number of existing objects in the last scan that have a pipe of this policy without permission.
	//
	// +optional
	Violations *int32 `json:"violations,omitempty"`
	// Subjects counts the subjects.
	//
	// +optional
	Subjects SubjectCounts `json:"subjects,omitzero"`
	// Nodes counts the nodes that decide by this policy. There is nothing here while nodes get no bundles.
	//
	// +optional
	Nodes *NodeCounts `json:"nodes,omitempty"`
}

// NodeCounts says on how many nodes a policy decides. Each node that has reported is one of current, behind, refusing and silent.
type NodeCounts struct {
	// Total is the number of nodes that have reported.
	Total int32 `json:"total"`
	// Current decide by the newest bundle, with this generation of the policy in it.
	Current int32 `json:"current"`
	// Behind decide by something else: an older bundle, none, or their own configuration alone.
	Behind int32 `json:"behind"`
	// Refusing are behind because they did not take the bundle that they were offered.
	Refusing int32 `json:"refusing"`
	// Silent have not reported for 15 minutes. They may still decide by what they had.
	Silent int32 `json:"silent"`
	// Summary is "current/total".
	Summary string `json:"summary"`
	// Others names nodes that are not current, at most ten: those first that deny or refuse, or will.
	//
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +optional
	Others []OtherNode `json:"others,omitempty"`
}

// OtherNode is a node that is not current.
type OtherNode struct {
	// Name of the GuardedNode.
	Name string `json:"name"`
	// Standing is Denying, Refusing, Unreadable, Unreachable, Silent, Local or Behind.
	Standing string `json:"standing"`
	// Revision is the number of its bundle; 0 if it has none.
	Revision int64 `json:"revision"`
}

// SubjectCounts counts the subjects of a policy.
type SubjectCounts struct {
	// Open have their permission now.
	Open int32 `json:"open"`
	// ExpiringSoon are open and expire within seven days.
	ExpiringSoon int32 `json:"expiringSoon"`
	// Expired had their permission.
	Expired int32 `json:"expired"`
}
