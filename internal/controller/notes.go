package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Reasons of Events.
const (
	EventActivated       = "Activated"
	EventRefused         = "Refused"
	EventWaits           = "Waits"
	EventPublished       = "Published"
	EventSubjectExpiring = "SubjectExpiring"
	EventSubjectExpired  = "SubjectExpired"
)

// note is what an Event says.
type note struct {
	kind           string // corev1.EventTypeNormal or Warning
	reason, action string
	text           string
	subject        string // that it is about, or ""
}

// fieldPath tells Events about the subjects of one policy apart: two with all else equal become one series.
func (n note) fieldPath() string {
	if n.subject == "" {
		return ""
	}
	return "spec.subjects{" + n.subject + "}"
}

// transitions says what is new in after. The status that was written before is the memory, so that nothing is repeated
// by a leader that has only begun. published is the last generation that was called published.
func transitions(before, after v1alpha1.PolicyStatus, published int64) []note {
	var out []note
	same := before.ObservedGeneration == after.ObservedGeneration
	if isActive(after) {
		if !same || !isActive(before) {
			out = append(out, note{corev1.EventTypeNormal, EventActivated, "Activate",
				fmt.Sprintf("generation %d decides, revision %s", after.ObservedGeneration, after.Revision), ""})
		}
		if meta.IsStatusConditionTrue(after.Conditions, v1alpha1.ConditionPublished) && published != after.ObservedGeneration {
			out = append(out, note{corev1.EventTypeNormal, EventPublished, "Publish",
				fmt.Sprintf("generation %d decides on all %d replicas", after.ObservedGeneration, after.Replicas.Live), ""})
		}
		return out
	}
	obstacle := refusal(after)
	if obstacle == nil {
		return nil
	}
	if was := refusal(before); same && was != nil && was.Reason == obstacle.Reason && was.Message == obstacle.Message {
		return nil
	}
	reason := EventRefused
	if obstacle.Reason == ReasonWaits {
		reason = EventWaits
	}
	return append(out, note{corev1.EventTypeWarning, reason, "Activate",
		fmt.Sprintf("generation %d does not decide: %s", after.ObservedGeneration, policyset.Clip(obstacle.Message, maxProblem)), ""})
}

// isActive reports whether a status says that its generation compiles and passes its tests.
func isActive(s v1alpha1.PolicyStatus) bool {
	return meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionCompiled) && meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionTestsPassed)
}

// refusal is the condition that says why not. What is merely unknown is no refusal.
func refusal(s v1alpha1.PolicyStatus) *metav1.Condition {
	for _, kind := range []string{v1alpha1.ConditionCompiled, v1alpha1.ConditionTestsPassed} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			return c
		}
	}
	return nil
}
