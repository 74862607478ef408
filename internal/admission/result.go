package admission

import (
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// CodeFailure is the code of a denial that no rule gave: there was no decision, or the request could not be read.
const CodeFailure = "PG999"

// Effect is the strongest thing that was found, or EffectAllow.
type Effect string

// Effects, from the weakest to the strongest.
const (
	EffectAllow Effect = "allow"
	EffectAudit Effect = "audit"
	EffectWarn  Effect = "warn"
	EffectDeny  Effect = "deny"
)

// Keys of audit annotations. The API server puts the name of the webhook and a slash in front.
const (
	annotationDecision  = "decision-id"
	annotationRevision  = "revision"
	annotationEffect    = "effect"
	annotationCodes     = "codes"
	annotationUnchanged = "unchanged"
	annotationStatic    = "static-pod"
)

// Result is the judgement of one request.
type Result struct {
	Allowed bool
	// Effect is the strongest effect of the findings.
	Effect Effect
	// Code is that of the finding that decided: PG001. It is CodeFailure if there was no decision, and empty if nothing
	// was found.
	Code string
	// Codes are those of all findings, each once, in order.
	Codes []string
	// Reason says why there was no decision: a policy.Reason, or one of the constants of this package. Else it is empty.
	Reason string
	// Status is the HTTP status of the answer: 200, 400 for a request that cannot be judged, or 403.
	Status int32
	// Message is for the person whose object was refused; empty if it was not.
	Message string
	// Warnings are shown by kubectl. Each has at most 120 characters, as the API asks.
	Warnings []string
	// Causes name the fields that were refused.
	Causes []metav1.StatusCause
	// AuditAnnotations go into the API server's audit log.
	AuditAnnotations map[string]string
	Findings         []policy.Finding
	// Details put each of the findings into words, in the same order.
	Details []Detail
	// Plain is true if the object holds nothing that the conditions of the webhook's configuration look for. They send hardly
	// any of those, whatever policies read.
	Plain bool
	// Unchanged is true if the findings would refuse the object, but the update leaves what they are about as it was.
	Unchanged bool
	// Static is true if the findings would refuse the mirror of a static pod, made by its node, which admission cannot stop.
	Static bool
	// DecisionID ties message, annotation and record together. It is empty if nothing was decided,
	// because the object holds nothing to decide.
	DecisionID string
	// Revision is that of the policies that decided.
	Revision string

	name string
	kind string
	// input is what the policies saw, for reviews without a trace.
	input *Input
}

// Detail is a finding in words.
type Detail struct {
	Finding policy.Finding
	// Text says in a line what the finding is about.
	Text string
	// Policies are the names of the PipePolicies that govern what it is about, sorted. The reader does not change them.
	Policies []string
	// OtherModes are those whose subject the container would be in its other mode: a HostProcess container as one that mounts pipes, or the reverse. They are
	// found for reviews without a trace, and only where no policy permits what the finding is about.
	OtherModes []OtherMode
}

// Response puts the result into the terms of the API.
func (r *Result) Response(uid types.UID) *admissionv1.AdmissionResponse {
	out := &admissionv1.AdmissionResponse{
		UID:              uid,
		Allowed:          r.Allowed,
		Warnings:         r.Warnings,
		AuditAnnotations: r.AuditAnnotations,
	}
	if r.Allowed {
		return out
	}
	reason := metav1.StatusReasonForbidden
	if r.Status == http.StatusBadRequest {
		reason = metav1.StatusReasonBadRequest
	}
	out.Result = &metav1.Status{
		Status:  metav1.StatusFailure,
		Message: r.Message,
		Reason:  reason,
		Code:    r.Status,
		Details: &metav1.StatusDetails{Name: r.name, Kind: r.kind, Causes: r.Causes},
	}
	return out
}
