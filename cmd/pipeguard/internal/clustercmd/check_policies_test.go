package clustercmd

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestPoliciesThatDoNotRefuse(t *testing.T) {
	findsFaults(t, map[string]fault{
		"a policy that waits": {func(f *fakeAPI) { f.policy(t).Generation++ }, "policies", "its newest generation was not looked at yet"},
		"a policy that is refused": {func(f *fakeAPI) {
			f.policy(t).Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "False", Reason: "Refused", Message: "no"}}
		}, "policies", "Ready is False: Refused: no"},
		"a policy without a status": {func(f *fakeAPI) { f.policy(t).Status.Conditions = nil }, "policies", "does not say that it decides"},
		"bundles that are not published": {func(f *fakeAPI) {
			p := f.policy(t)
			p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: "BundlesPublished", Status: "False", Message: "no key"})
		}, "policies", "no key"},
		"a policy that records":     {func(f *fakeAPI) { f.policy(t).Spec.Admission.Action = v1alpha1.ActionAudit }, "policies", "admission.action is Audit"},
		"nodes that record":         {func(f *fakeAPI) { f.policy(t).Spec.Node.Action = v1alpha1.NodeLogOnly }, "policies", "node.action is LogOnly"},
		"a policy not on all nodes": {func(f *fakeAPI) { f.policy(t).Status.Nodes = &v1alpha1.NodeCounts{Total: 3, Current: 2} }, "policies", "2 of 3 nodes"},
	})
}
