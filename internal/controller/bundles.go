package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Activated is what decides on this replica, and the PipePolicies that it was made of, objects and those of the parameters: they are for nodes as well.
// Readers must not write to them.
type Activated struct {
	// Attempt is Outcome.ActiveAttempt.
	Attempt string
	// Revision is what denials call it.
	Revision string
	// PipePolicies are in the order of their names.
	PipePolicies []v1alpha1.PipePolicy
	// Parameters are those of the same attempt.
	Parameters admission.Parameters
}

// Activated returns what decides, and false before anything does.
func (a *Activator) Activated() (Activated, bool) {
	if p := a.activated.Load(); p != nil {
		return *p, true
	}
	return Activated{}, false
}

// Bundles is what became of policies on their way to nodes.
type Bundles struct {
	// Attempt is that of the Activated policies that it is about; "" if nothing was attempted yet.
	Attempt string
	// IsPublished says that every pool of nodes has a bundle of them.
	IsPublished bool
	// Reason and Message are the condition's.
	Reason, Message string
}

// reasonPending is the reason of a condition about bundles until they have been attempted.
const reasonPending = "Pending"

// bundlesPublished is the condition about the bundles with a generation of a policy. While nothing is known of those it
// stays as it is, if it is about this generation: a leader that has only begun must not rewrite every status twice.
func (p statusInput) bundlesPublished(active bool, generation int64, before []metav1.Condition) metav1.Condition {
	verdict := no(ReasonNotActive, "it is not active: see Compiled and TestsPassed")
	switch {
	case !active:
	case p.bundles.Attempt == "" || p.bundles.Attempt != p.outcome.ActiveAttempt:
		for _, b := range before {
			if b.Type == v1alpha1.ConditionBundlesPublished && b.ObservedGeneration == generation {
				return b
			}
		}
		verdict = unknown(reasonPending, "bundles with it are being made")
	case p.bundles.IsPublished:
		verdict = yes(p.bundles.Reason, p.bundles.Message)
	default:
		verdict = no(p.bundles.Reason, p.bundles.Message)
	}
	return p.condition(v1alpha1.ConditionBundlesPublished, verdict, generation, before)
}

// expressedOnNodes says what of a policy holds at admission alone.
func expressedOnNodes(o *v1alpha1.PipePolicy) condition {
	if notes := policyset.ForAdmissionAlone(o); len(notes) > 0 {
		return no(ReasonInPart, lines(notes))
	}
	return yes(ReasonExpressed, "nodes permit what it says")
}
