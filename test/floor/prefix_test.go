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

// With equalPower Deny, the directory of the pipes that only groups may make, those of containerd's shims among them, is of equal power (pipe in internal/core/pipepath/powers.go).
func TestTheDirectoryOfProtectedPipesIsRefused(t *testing.T) {
	p := strict()
	made, err := floor.New(floor.Options{Name: "floor", Policies: p})
	if err != nil {
		t.Fatal(err)
	}
	j, w := newJudge(t, made), reviewer(t, p)
	volume := &request{kind: schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolume"}, resource: "persistentvolumes", operation: admission.Create, object: &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"}, ObjectMeta: metav1.ObjectMeta{Name: "x"},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: `\\.\pipe\ProtectedPrefix`}}},
	}}
	pod := sized(1, 1, 1, 0, "", "")
	pod.object.(*corev1.Pod).Spec.Volumes[0].HostPath.Path = `\\.\pipe\ProtectedPrefix`
	for what, r := range map[string]*request{"pod": pod, "volume": volume} {
		v, res := j.ask(t, r), w.Review(product.WithoutTrace(t.Context()), r.review(t))
		if v.allowed || res.Allowed {
			t.Errorf("%s: the floor admits: %t, the webhook: %t", what, v.allowed, res.Allowed)
		}
	}
}
