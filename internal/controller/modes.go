package controller

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// modesServed says which subjects of a policy have pods in a mode that it does not permit.
func modesServed(found map[admission.OtherMode]int32) condition {
	var texts []string
	for m, n := range found {
		what := "mount guarded pipes, which the policy does not permit; add pipes"
		if m.HostProcess {
			what = "run as HostProcess containers, which the policy does not permit; add hostProcess"
		}
		texts = append(texts, fmt.Sprintf("subject %s: %d pods %s", m.Subject, n, what))
	}
	if len(texts) == 0 {
		return yes(ReasonServed, "no pod of its subjects runs in a mode that it does not permit")
	}
	slices.Sort(texts)
	return no(ReasonOtherMode, lines(texts))
}

// modes is the condition ModesServed. While the scan goes on by new policies it stays as it is, if it is about this generation; else there is none.
func (p statusInput) modes(o *v1alpha1.PipePolicy, c *condition) *metav1.Condition {
	before := o.Status.Conditions
	if c != nil {
		return new(p.condition(v1alpha1.ConditionModesServed, *c, o.Generation, before))
	}
	if b := meta.FindStatusCondition(before, v1alpha1.ConditionModesServed); b != nil && b.ObservedGeneration == o.Generation {
		return new(*b)
	}
	return nil
}
