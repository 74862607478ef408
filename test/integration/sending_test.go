//go:build !windows

package integration

import (
	"encoding/json"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/routes"
)

// patches turn a Deployment without volumes into one whose container mounts the pipe.
func patches(t *testing.T, o client.Object) map[types.PatchType][]byte {
	t.Helper()
	guilty := spec(driver, pipe)
	part := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": guilty}}}
	whole := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()},
		"spec": appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: routes.Labels()}, Template: template(driver, pipe)},
	}
	steps := []map[string]any{
		{"op": "add", "path": "/spec/template/spec/volumes", "value": guilty.Volumes},
		{"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts", "value": guilty.Containers[0].VolumeMounts},
	}
	out := map[types.PatchType][]byte{}
	for kind, content := range map[types.PatchType]any{
		types.StrategicMergePatchType: part, types.MergePatchType: part, types.JSONPatchType: steps,
		types.ApplyYAMLPatchType: whole,
	} {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		out[kind] = text
	}
	return out
}

func TestEveryKindOfPatchIsJudgedByItsOutcome(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	deployment := routes.Workloads()[0]
	for kind := range patches(t, &appsv1.Deployment{}) {
		t.Run(string(kind), func(t *testing.T) {
			for _, space := range []string{others, drivers} {
				o := named(deployment.Make(template(driver)), space)
				created(t, o)
				var options []client.PatchOption
				if kind == types.ApplyYAMLPatchType {
					options = []client.PatchOption{client.FieldOwner("test"), client.ForceOwnership}
				}
				err := at(t).api.Client.Patch(t.Context(), o, client.RawPatch(kind, patches(t, o)[kind]), options...)
				if space == others {
					refused(t, err, "PG001")
				} else if err != nil {
					t.Errorf("the driver's: %v", err)
				}
			}
		})
	}
}

func TestServerSideApplyCannotCreateWhatIsRefused(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for _, space := range []string{others, drivers} {
		p := pod(space, driver, pipe)
		p.APIVersion, p.Kind = "v1", "Pod"
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		if err != nil {
			t.Fatal(err)
		}
		delete(object, "status")
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		err = at(t).api.Client.Patch(t.Context(), p, client.RawPatch(types.ApplyYAMLPatchType, text), client.FieldOwner("test"))
		if space == others {
			refused(t, err, "PG001")
		} else if err != nil {
			t.Errorf("the driver's: %v", err)
		}
	}
}

func TestWhatIsSentAsProtobufIsJudged(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	config := rest.CopyConfig(at(t).api.Config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	binary, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = binary.CoreV1().Pods(others).Create(t.Context(), pod(others, driver, pipe), metav1.CreateOptions{})
	refused(t, err, "PG001")
	deployment := named(&appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: routes.Labels()}, Template: template(driver, pipe)}}, others)
	_, err = binary.AppsV1().Deployments(others).Create(t.Context(), deployment, metav1.CreateOptions{})
	refused(t, err, "PG001")
	_, err = binary.CoreV1().PersistentVolumes().Create(t.Context(), volume(routes.Local(pipe)), metav1.CreateOptions{})
	refused(t, err, "PG007")
	if _, err = binary.CoreV1().Pods(drivers).Create(t.Context(), pod(drivers, driver, pipe), metav1.CreateOptions{}); err != nil {
		t.Errorf("the driver's: %v", err)
	}
}

func TestATrialIsJudgedAsTheRealThing(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	refused(t, at(t).api.Client.Create(t.Context(), pod(others, driver, pipe), client.DryRunAll), "PG001")
	p := pod(drivers, driver, pipe)
	if err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
		t.Errorf("the driver's: %v", err)
	}
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(p), &corev1.Pod{}); !apierrors.IsNotFound(err) {
		t.Errorf("a trial was stored: %v", err)
	}
}

func TestANameThatTheAPIServerMakesIsJudgedWithoutIt(t *testing.T) {
	guarded(t)
	p := pod(namespace(t, "others", driver), driver, pipe)
	p.Name, p.GenerateName = "", "made-"
	refused(t, at(t).api.Client.Create(t.Context(), p), "PG001")
}

func TestUsersDoNotMatter(t *testing.T) {
	guarded(t)
	others := namespace(t, "others", driver)
	for _, groups := range [][]string{{"system:masters"}, {"system:masters", "system:nodes"}, {"system:masters", "system:serviceaccounts:kube-system"}} {
		config := rest.CopyConfig(at(t).api.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("somebody-%d", len(groups)), Groups: groups}
		refused(t, newClient(t, config).Create(t.Context(), pod(others, driver, pipe)), "PG001")
	}
}
