//go:build !windows

package integration

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/routes"
)

// Whatever else the API server would take an object of a judged kind at is a way around the webhook. In another
// version of Kubernetes this list is another, and somebody has to think about it.
func TestJudgedKindsAreServedNowhereElse(t *testing.T) {
	_, lists, err := clientset(t).Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	judged := map[string]bool{}
	for _, k := range admission.Kinds() {
		judged[k.Kind] = true
	}
	var got []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			if judged[r.Kind] && slices.ContainsFunc(r.Verbs, func(v string) bool { return v == "create" || v == "update" || v == "patch" }) {
				got = append(got, list.GroupVersion+" "+r.Name)
			}
		}
	}
	slices.Sort(got)
	got = slices.Compact(got) // of the entries of each place
	want := []string{
		"apps/v1 daemonsets", "apps/v1 daemonsets/status",
		"apps/v1 deployments", "apps/v1 deployments/status",
		"apps/v1 replicasets", "apps/v1 replicasets/status",
		"apps/v1 statefulsets", "apps/v1 statefulsets/status",
		"batch/v1 cronjobs", "batch/v1 cronjobs/status",
		"batch/v1 jobs", "batch/v1 jobs/status",
		"v1 persistentvolumes", "v1 persistentvolumes/status",
		"v1 pods", "v1 pods/ephemeralcontainers", "v1 pods/resize", "v1 pods/status",
		"v1 podtemplates",
		"v1 replicationcontrollers", "v1 replicationcontrollers/status",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The configuration asks about what is in the list above, without the subresources that the next test shows to be harmless.
func TestTheConfigurationNamesEveryJudgedKind(t *testing.T) {
	configuration, err := shared.chart.Configuration(cluster.ObjectConfiguration, 1, []byte("with the rules"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range configuration.Webhooks {
		for _, r := range w.Rules {
			for _, resource := range r.Resources {
				got = append(got, strings.TrimPrefix(r.APIGroups[0]+"/"+r.APIVersions[0]+" "+resource, "/"))
			}
			if len(r.APIGroups) != 1 || len(r.APIVersions) != 1 {
				t.Errorf("rule %+v: more than one group or version", r)
			}
		}
		if w.NamespaceSelector != nil || w.ObjectSelector != nil {
			t.Errorf("%s has a selector: whoever may label could leave", w.Name)
		}
	}
	slices.Sort(got)
	got = slices.Compact(got) // of the entries of each place
	want := []string{
		"apps/v1 daemonsets", "apps/v1 deployments", "apps/v1 replicasets", "apps/v1 statefulsets", "batch/v1 cronjobs", "batch/v1 jobs",
		"v1 persistentvolumes", "v1 pods", "v1 pods/ephemeralcontainers", "v1 podtemplates", "v1 replicationcontrollers",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSubresourcesThatAreNotSentGiveNobodyAPipe(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for _, w := range routes.Workloads() {
		if w.Template == nil || w.Kind == "PodTemplate" {
			continue // nothing to change, or no status
		}
		t.Run(w.Kind, func(t *testing.T) {
			o := named(w.Make(template(driver)), others)
			created(t, o)
			w.Template(o).Spec = spec(driver, pipe)
			_ = at(t).api.Client.Status().Update(t.Context(), o) // whether it is refused or ignored
			if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil || len(w.Template(o).Spec.Volumes) != 0 {
				t.Errorf("stored: %+v, %v", w.Template(o).Spec.Volumes, err)
			}
		})
	}
	pods := clientset(t).CoreV1().Pods(others)
	for name, update := range map[string]func(*corev1.Pod) error{
		"pods/status": func(p *corev1.Pod) error {
			_, err := pods.UpdateStatus(t.Context(), p, metav1.UpdateOptions{})
			return err
		},
		"pods/resize": func(p *corev1.Pod) error {
			_, err := pods.UpdateResize(t.Context(), p.Name, p, metav1.UpdateOptions{})
			return err
		},
		"pods": func(p *corev1.Pod) error { _, err := pods.Update(t.Context(), p, metav1.UpdateOptions{}); return err },
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(others, driver)
			created(t, p)
			guilty := p.DeepCopy()
			guilty.Spec.Volumes, guilty.Spec.Containers[0].VolumeMounts = spec("", pipe).Volumes, spec("", pipe).Containers[0].VolumeMounts
			_ = update(guilty)
			if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || len(p.Spec.Volumes) != 0 {
				t.Errorf("stored: %+v, %v", p.Spec.Volumes, err)
			}
		})
	}
	v := volume(routes.Local("/mnt/disk"))
	created(t, v)
	deleted(t, v)
	v.Spec.Local.Path = pipe
	_ = at(t).api.Client.Status().Update(t.Context(), v)
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil || v.Spec.Local.Path != "/mnt/disk" {
		t.Errorf("stored: %q, %v", v.Spec.Local.Path, err)
	}
}

// A scheduling gate holds a pod back. Whoever takes it away starts the pod, so that counts as a new one.
func TestAnOlderPodThatWaitsIsNotLetGo(t *testing.T) {
	others := namespace(t, "others")
	older := pod(others, "", pipe)
	older.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	guarded(t)
	before(t, func() { created(t, older) })
	older.Labels = map[string]string{"example.com/note": "kept"}
	admin, warned := warnings(t)
	if err := admin.Update(t.Context(), older); err != nil {
		t.Fatalf("a label: %v", err)
	}
	if len(warned.texts) != 1 || !strings.HasSuffix(warned.texts[0], "(unchanged)") {
		t.Errorf("warnings: %q", warned.texts)
	}
	older.Spec.SchedulingGates = nil
	refused(t, at(t).api.Client.Update(t.Context(), older), "PG001")
}
