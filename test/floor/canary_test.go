package floor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	product "github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
)

// The floor leaves to the webhook what the leader asks the API server about, and nothing that could be stored.
func TestOnlyATrialOfTheCanaryPassesTheFloor(t *testing.T) {
	made, err := floor.New(floor.Options{Name: "floor", Policies: strict()})
	if err != nil {
		t.Fatal(err)
	}
	j := newJudge(t, made)
	var template corev1.PodTemplate
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(product.APICanary("kube-system").Object, &template); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: template.ObjectMeta, Spec: template.Template.Spec}
	podTemplates, pods := schema.GroupVersionKind{Version: "v1", Kind: "PodTemplate"}, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	for what, c := range map[string]struct {
		request
		passes bool
	}{
		"the canary":                {request{kind: podTemplates, resource: "podtemplates", object: &template, name: product.APICanaryName, dryRun: true}, true},
		"the canary, to be stored":  {request{kind: podTemplates, resource: "podtemplates", object: &template, name: product.APICanaryName}, false},
		"one of another name":       {request{kind: podTemplates, resource: "podtemplates", object: &template, name: "x", dryRun: true}, false},
		"one without a name so far": {request{kind: podTemplates, resource: "podtemplates", object: &template, name: " ", dryRun: true}, false},
		"a pod of its name":         {request{kind: pods, resource: "pods", object: pod, name: product.APICanaryName, dryRun: true}, false},
	} {
		c.operation, c.namespace = admission.Create, "kube-system"
		if v := j.ask(t, &c.request); v.allowed != c.passes || v.failed {
			t.Errorf("%s: allowed %t, %q", what, v.allowed, v.messages)
		}
	}
}
