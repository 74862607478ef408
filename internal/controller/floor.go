package controller

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// Floor is what became of policies in the floor.
type Floor struct {
	// Attempt is that of the Activated policies that it is about; "" if nothing was attempted yet.
	Attempt string
	// Err is why the floor is not made of them.
	Err error
	// LeftOut are the names of PipePolicies with a subject that it cannot say.
	LeftOut []string
}

// inFloor is the condition about the floor: none, or one. While nothing is known of these policies it stays as it is, if it is about this generation.
func (p statusInput) inFloor(key ObjectKey, generation int64, before []metav1.Condition) []metav1.Condition {
	if p.floor == nil {
		return nil
	}
	verdict := no(ReasonNotActive, "it is not active: see Compiled and TestsPassed")
	switch {
	case key.Kind == kindPolicyModule:
		verdict = no(ReasonNotInCEL, "the floor cannot say Rego: while no replica of the webhook answers, this module refuses nothing")
	case !p.isActive(key, generation):
	case p.floor.Attempt == "" || p.floor.Attempt != p.outcome.ActiveAttempt:
		for _, b := range before {
			if b.Type == v1alpha1.ConditionInFloor && b.ObservedGeneration == generation {
				return []metav1.Condition{b}
			}
		}
		verdict = unknown(reasonPending, "the floor with it is being written")
	case p.floor.Err != nil:
		verdict = no(ReasonNotWritten, text(p.floor.Err))
	case slices.Contains(p.floor.LeftOut, key.Name):
		verdict = no(ReasonNotWritten, "a subject is too large for the floor, or there is no room for it: the floor refuses what only that permits. Give the policy fewer subjects, or shorter lists")
	default:
		verdict = yes(ReasonWritten, "the API server refuses what it refuses, and the same or less of what it permits")
	}
	return []metav1.Condition{p.condition(v1alpha1.ConditionInFloor, verdict, generation, before)}
}
