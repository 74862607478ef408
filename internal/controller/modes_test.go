package controller

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

func TestAPipePolicySaysWhichSubjectsRunInAModeThatItDoesNotPermit(t *testing.T) {
	l := lead()
	var found map[admission.OtherMode]int32
	known := false
	l.otherModes = func(policy string) (map[admission.OtherMode]int32, bool) {
		if policy != "p" {
			t.Errorf("asked for %s", policy)
		}
		return found, known
	}
	status := func() *metav1.Condition {
		t.Helper()
		l.reconcile(t)
		return meta.FindStatusCondition(l.server.pipe.Status.Conditions, v1alpha1.ConditionModesServed)
	}
	if c := status(); c != nil {
		t.Errorf("before the first scan: %+v", c)
	}
	known = true
	if c := status(); c == nil || c.Status != metav1.ConditionTrue || c.Reason != ReasonServed || c.ObservedGeneration != 2 {
		t.Errorf("nothing found: %+v", c)
	}
	found = map[admission.OtherMode]int32{{Policy: "p", Subject: "s", HostProcess: true}: 3, {Policy: "p", Subject: "l"}: 1}
	const want = "subject l: 1 pods mount guarded pipes, which the policy does not permit; add pipes\n" +
		"subject s: 3 pods run as HostProcess containers, which the policy does not permit; add hostProcess"
	if c := status(); c == nil || c.Status != metav1.ConditionFalse || c.Reason != ReasonOtherMode || c.Message != want {
		t.Errorf("two found: %+v", c)
	}
	if !meta.IsStatusConditionTrue(l.server.pipe.Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("the policy is no longer ready")
	}
	known = false
	if c := status(); c == nil || c.Message != want {
		t.Errorf("while another scan goes on: %+v", c)
	}
	l.server.pipe.Generation, l.outcome.Generations, l.outcome.Active = 3, map[ObjectKey]int64{keyP: 3}, map[ObjectKey]int64{keyP: 3}
	if _, err := l.pipePolicies(t.Context(), request("p")); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(l.server.pipe.Status.Conditions, v1alpha1.ConditionModesServed); c != nil {
		t.Errorf("of another generation: %+v", c)
	}
}

func TestTheMessageOnOtherModesIsBounded(t *testing.T) {
	found := map[admission.OtherMode]int32{}
	for i := range 256 {
		found[admission.OtherMode{Policy: "p", Subject: fmt.Sprintf("%s%03d", strings.Repeat("s", 60), i), HostProcess: true}] = 1 << 30
	}
	first := modesServed(found)
	if len(first.message) > maxMessage || !strings.HasSuffix(first.message, "\nand 251 more") {
		t.Errorf("%d bytes: %s", len(first.message), first.message)
	}
	if diff := cmp.Diff(first.message, modesServed(found).message); diff != "" {
		t.Errorf("another message each time:\n%s", diff)
	}
}
