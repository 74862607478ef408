package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of conditions of policy objects.
const (
	// ConditionReady is true if this generation of the object decides on every replica of the webhook.
	ConditionReady = "Ready"
	// ConditionCompiled is true if all policies compile with this generation of the object among them.
	ConditionCompiled = "Compiled"
	// ConditionTestsPassed is true if all tests and the built-in checks pass with this generation among them.
	ConditionTestsPassed = "TestsPassed"
	// ConditionPublished is true if every live replica of the webhook has taken over the revision that includes this generation.
	ConditionPublished = "Published"
	// ConditionBundlesPublished is true of a PipePolicy if every pool of nodes has a signed bundle with this generation in it.
	// Where no bundles are made, there is no such condition.
	ConditionBundlesPublished = "BundlesPublished"
	// ConditionExpressedOnNodes is true of a PipePolicy if nodes permit its subjects all that admission takes it to permit; else its message names what
	// holds at admission alone. Where no bundles are made, there is no such condition.
	ConditionExpressedOnNodes = "ExpressedOnNodes"
	// ConditionModesServed is true of a PipePolicy if the last scan found no pod that only its mode keeps from being a subject: HostProcess containers of a subject
	// without hostProcess, or mounts of guarded pipes where the policy has no pipes, which no other policy permits. Until the first scan there is no such condition.
	ConditionModesServed = "ModesServed"
	// ConditionInFloor is true if the floor, which the API server evaluates where no replica of the webhook answers, refuses what this generation of the object refuses.
	// It is never true of a PolicyModule, which CEL cannot say. Where no floor is kept, there is no such condition.
	ConditionInFloor = "InFloor"
)

// PolicyStatus is the status of a policy object.
type PolicyStatus struct {
	// ObservedGeneration is the generation of the object that the rest of the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Revision is the hash of all policies and their data that decide now: "sha256:" and 64 hexadecimal digits. It is
	// the revision in denials, audit annotations and decision records.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
	// Replicas counts the replicas of the webhook.
	//
	// +optional
	Replicas ReplicaCounts `json:"replicas,omitzero"`
	// Conditions are Ready, Compiled, TestsPassed and Published; a PipePolicy has ModesServed besides and, where bundles are made for nodes,
	// BundlesPublished and ExpressedOnNodes. Where a floor is kept, both kinds have InFloor.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ReplicaCounts says on how many replicas of the webhook a revision decides.
type ReplicaCounts struct {
	// Live replicas have reported within the last minute and a half.
	Live int32 `json:"live"`
	// Current are live and decide by the status's revision with this generation in it; none while it is not active.
	Current int32 `json:"current"`
	// Summary is "current/live".
	Summary string `json:"summary,omitempty"`
}
