package clustercmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

// driver is a pod with a guarded pipe.
const driver = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "driver"}, "spec": {
  "containers": [{"name": "c", "image": "i", "volumeMounts": [{"name": "p", "mountPath": "\\\\.\\pipe\\csi-proxy-disk-v1"}]}],
  "volumes": [{"name": "p", "hostPath": {"path": "\\\\.\\pipe\\csi-proxy-disk-v1"}}]}}`

// live is a cluster that permits the pipe to namespaces with a subject or the label team=storage refuses it to others.
func liveCluster(t *testing.T) (f *fakeAPI, file string) {
	t.Helper()
	f = strict()
	get[*v1alpha1.PipePolicy](t, f, atPolicies, 0).Spec.Subjects = []v1alpha1.Subject{{Name: "driver", Namespace: "shop"}}
	leaving := get[*v1alpha1.PipePolicy](t, f, atPolicies, 0).DeepCopy()
	leaving.Name, leaving.DeletionTimestamp = "leaving", new(metav1.Now())
	leaving.Spec.Subjects = nil // which would not change what it governs
	f.lists[atPolicies] = append(f.lists[atPolicies], leaving)
	f.lists[atModules] = []any{&v1alpha1.PolicyModule{
		TypeMeta: metav1.TypeMeta{APIVersion: "pipeguard.dev/v1alpha1", Kind: "PolicyModule"}, ObjectMeta: metav1.ObjectMeta{Name: "house"},
		Spec: v1alpha1.PolicyModuleSpec{Modules: []v1alpha1.RegoFile{
			{Name: "team.rego", Rego: `package pipeguard.admission

# METADATA
# title: Only namespaces of the storage team have pipes
# custom:
#   code: HOUSE1
#   severity: high
findings contains {"code": "HOUSE1", "effect": "deny", "field": mount.field} if {
	some mount in input.mounts
	object.get(input.namespaceLabels, "team", "") != "storage"
}
`},
			{Name: "team_test.rego", Rego: `package pipeguard.admission_test

import data.pipeguard.admission

test_no_team if {
	"HOUSE1" in {f.code | some f in admission.findings} with input as {"namespaceLabels": {}, "mounts": [{"field": "x"}]}
}
`},
		}},
	}}
	f.objects["/api/v1/namespaces/shop"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"team": "storage"}}}
	f.objects[atPods+"/driver"] = json.RawMessage(driver[:strings.Index(driver, `"name": "driver"`)] + `"namespace": "shop", ` + driver[strings.Index(driver, `"name": "driver"`):])
	file = filepath.Join(t.TempDir(), "pod.json")
	if err := os.WriteFile(file, []byte(driver), 0o600); err != nil {
		t.Fatal(err)
	}
	return f, file
}

// decides has the replicas decide by the revision that judges here.
func (f *fakeAPI) decides(t *testing.T, file string) {
	t.Helper()
	got := f.run(t, "review", "--live", "-o", "json", file)
	var report struct{ Revision string }
	if err := json.Unmarshal([]byte(got.out), &report); err != nil || report.Revision == "" || got.code != cli.ExitBadInput {
		t.Fatalf("exit code %d, %v: %s%s", got.code, err, got.out, got.errOut)
	}
	for i := range f.lists[atLeases] {
		get[*coordinationv1.Lease](t, f, atLeases, i).Annotations[v1alpha1.AnnotationRevision] = report.Revision
	}
}

func TestObjectsAreJudgedWithTheClustersPoliciesAndNamespaces(t *testing.T) {
	f, file := liveCluster(t)
	f.decides(t, file)
	if got := f.run(t, "review", "--live", file); got.code != cli.ExitYes || strings.Count(got.errOut, "\n") != 1 || !strings.Contains(got.errOut, "warning: PipePolicy disks") {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
	f.requests = nil
	got := f.run(t, "explain", "pod/driver")
	if got.code != cli.ExitYes || !strings.Contains(got.out, "PipePolicy disks, subject driver") {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
	for _, r := range f.requests {
		if !strings.HasPrefix(r, "GET ") {
			t.Errorf("it asks %s", r)
		}
	}
	get := f.objects["/api/v1/namespaces/shop"]
	delete(f.objects, "/api/v1/namespaces/shop") // a namespace that is not there has no labels
	if got := f.run(t, "review", "--live", file); got.code != cli.ExitNo || !strings.Contains(got.out, "HOUSE1") {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
	f.objects["/api/v1/namespaces/shop"] = get
	if got := f.run(t, "review", "--live", "-n", "ops", file); got.code != cli.ExitNo || !strings.Contains(got.out, "ops/driver: denied") {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
}

func TestWhatCannotBeReadIsNoAnswer(t *testing.T) {
	f, file := liveCluster(t)
	f.decides(t, file)
	for _, path := range []string{atDeployment, atParameters, atPolicies, atModules, atLeases, "/api/v1/namespaces/shop"} {
		f.answers = map[string]metav1.Status{path: lacking("it")}
		if got := f.run(t, "review", "--live", file); got.code != cli.ExitBadInput || !strings.Contains(got.errOut, "it is forbidden") {
			t.Errorf("%s: exit code %d, %s%s", path, got.code, got.out, got.errOut)
		}
	}
	f.answers = nil
	if got := f.run(t, "explain", "deploy/none"); got.code != cli.ExitBadInput || !strings.Contains(got.errOut, "not found") {
		t.Errorf("exit code %d, %s%s", got.code, got.out, got.errOut)
	}
	for want, change := range map[string]func(){
		"guardedPipes":           func() { get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = "guardedPipes: 1" },
		"has no parameters.yaml": func() { get[*corev1.ConfigMap](t, f, atParameters, 0).Data = nil },
		"PolicyModule no-more: ": func() {
			f.lists[atModules] = []any{map[string]any{"apiVersion": "pipeguard.dev/v1alpha1", "kind": "PolicyModule", "metadata": map[string]any{"name": "no-more"}, "spec": map[string]any{"later": 1}}}
		},
		"no replica of the webhook": func() { f.lists[atLeases] = []any{} },
	} {
		f, file = liveCluster(t)
		change()
		if got := f.run(t, "review", "--live", file); got.code != cli.ExitBadInput || !strings.Contains(got.errOut, want) {
			t.Errorf("%s: exit code %d, %s%s", want, got.code, got.out, got.errOut)
		}
	}
}
