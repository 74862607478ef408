package floor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	product "github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
)

// An update that adds an annotation whose key folds to one of microsoft.com changes something: the webhook refuses it, and so must the floor.
// U+0130 is the only letter that the API server, which lower-cases keys before it validates them, lets into a key and that CEL's lowerAscii leaves alone.
func TestAnAnnotationThatFoldsToARuntimesIsAChange(t *testing.T) {
	p := strict()
	made, err := floor.New(floor.Options{Name: "floor", Policies: p})
	if err != nil {
		t.Fatal(err)
	}
	j, w := newJudge(t, made), reviewer(t, p)
	pod := func(key string) *corev1.Pod {
		o := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop", UID: "u", CreationTimestamp: metav1.NewTime(now)}}
		o.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
		o.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
		if key != "" {
			o.Annotations = map[string]string{key: "true"}
		}
		return o
	}
	for _, key := range []string{"microsoft.com/hostprocess-container", "MICROSOFT.com/hostprocess-container", "m\u0130crosoft.com/hostprocess-container", "microsoft.com/hostprocess-\u0130nherit-user", "microsoft.com/hostprocess-root\u212As"} {
		r := &request{kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods", namespace: "shop", operation: admission.Update, object: pod(key), before: pod("")}
		v, res := j.ask(t, r), w.Review(product.WithoutTrace(t.Context()), r.review(t))
		if v.allowed || res.Allowed {
			t.Errorf("%+q: the floor admits: %t, the webhook: %t, %s", key, v.allowed, res.Allowed, res.Codes)
		}
	}
}
