package nodepolicy_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// pod mounts the pipe disk-v1.
func pod(t *testing.T, namespace, account string) *admissionv1.AdmissionRequest {
	t.Helper()
	raw, err := json.Marshal(corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: namespace},
		Spec: corev1.PodSpec{
			ServiceAccountName: account,
			Containers: []corev1.Container{{
				Name: "azuredisk", Image: "registry.example/azuredisk-csi:v1", VolumeMounts: []corev1.VolumeMount{{Name: "p", MountPath: `\\.\pipe\csi-proxy-disk-v1`}},
			}},
			Volumes: []corev1.Volume{{Name: "p", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: `\\.\pipe\csi-proxy-disk-v1`}}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	return &admissionv1.AdmissionRequest{
		UID: "u", Kind: kind, RequestKind: &kind, Resource: resource, RequestResource: &resource,
		Namespace: namespace, Name: "x", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}
}

// One object decides at both ends, and both say its name and the same revision.
func TestOnePolicyRefusesThePodAndTheCall(t *testing.T) {
	objects := []v1alpha1.PipePolicy{object("disks-of-azure")}
	reviewer, inForce := reviewerOf(t, objects)
	b, err := policyset.BundleSources{PipePolicies: objects, PolicyRevision: inForce}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	b.Revision = 42
	clock := now
	l, err := nodepolicy.Try(t.Context(), options(&clock), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		namespace, account string
		allowed            bool
	}{{"kube-system", "csi-azuredisk-node-sa", true}, {"kube-system", "default", false}, {"default", "csi-azuredisk-node-sa", false}} {
		result := reviewer.Review(t.Context(), pod(t, c.namespace, c.account))
		review := result.Response("u")
		decision := l.Decide(call("disk", "v1", "ListDiskIDs", driver(func(who *caller.Caller) { who.Pod.Namespace, who.Pod.ServiceAccount = c.namespace, c.account })))
		if review.Allowed != c.allowed || decision.Allowed != c.allowed {
			t.Errorf("%s/%s: admission %t, node %t, want %t", c.namespace, c.account, review.Allowed, decision.Allowed, c.allowed)
		}
		if c.allowed {
			continue
		}
		revision := inForce[:19]
		for where, text := range map[string]string{"admission": review.Result.Message, "node": decision.Reason} {
			if !strings.Contains(text, "disks-of-azure") || !strings.Contains(text, revision) {
				t.Errorf("%s names neither the policy nor %s: %s", where, revision, text)
			}
		}
	}
}

// Policies can name the pipes and methods that there are, and are warned of others.
func TestPoliciesNameTheGroupsOfTheNodeAPI(t *testing.T) {
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	pipes, methods := map[string][]string{}, map[string]map[string]bool{}
	for _, a := range apis {
		group := a.GroupVersion().Group
		pipes[group] = append(pipes[group], a.GroupVersion().Pipe())
		if methods[group] == nil {
			methods[group] = map[string]bool{}
		}
		for _, o := range a.Operations() {
			methods[group][o.Name] = true
		}
	}
	known := access.Groups()
	if len(known) != len(pipes) {
		t.Errorf("%d groups, and %d are served", len(known), len(pipes))
	}
	for _, g := range known {
		slices.Sort(pipes[g.Name])
		var names []string
		for _, pipe := range g.Pipes() {
			names = append(names, pipe.Name())
		}
		slices.Sort(names)
		if diff := cmp.Diff(pipes[g.Name], names); diff != "" {
			t.Errorf("pipes of %s: %s", g.Name, diff)
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(methods[g.Name])), slices.Sorted(slices.Values(g.Methods))); diff != "" {
			t.Errorf("methods of %s: %s", g.Name, diff)
		}
	}
}
