//go:build !windows

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func clientset(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(at(t).api.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// debugger is an ephemeral container that mounts the pod's first volume, or none.
func debugger(name string, mounts bool) corev1.EphemeralContainer {
	c := corev1.EphemeralContainerCommon{Name: name, Image: image, ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePolicy: corev1.TerminationMessageReadFile}
	if mounts {
		c.VolumeMounts = []corev1.VolumeMount{{Name: "v0", MountPath: mounted}}
	}
	return corev1.EphemeralContainer{EphemeralContainerCommon: c}
}

// asleep declares a pipe that nobody mounts: what an ephemeral container would wake.
func asleep(namespace, account string) *corev1.Pod {
	p := pod(namespace, account, pipe)
	p.Spec.Containers[0].VolumeMounts = nil
	return p
}

func TestAnEphemeralContainerGetsNoPipe(t *testing.T) {
	others := namespace(t, "others")
	older, ordinary := asleep(others, ""), pod(others, "", "/var/log")
	guarded(t)
	before(t, func() { created(t, older, ordinary) })
	own := asleep(drivers, driver)
	created(t, own)
	pods := clientset(t).CoreV1()
	const field = "spec.ephemeralContainers[0].volumeMounts[0]"

	t.Run("by an update", func(t *testing.T) {
		p := older.DeepCopy()
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("debug", true)}
		_, err := pods.Pods(others).UpdateEphemeralContainers(t.Context(), p.Name, p, metav1.UpdateOptions{})
		if diff := cmp.Diff([]string{"PG001 " + field}, causes(refused(t, err, "PG001"))); diff != "" {
			t.Errorf("causes (-want +got):\n%s", diff)
		}
	})
	t.Run("by a patch", func(t *testing.T) {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []any{debugger("debug", true)}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []types.PatchType{types.StrategicMergePatchType, types.MergePatchType} {
			_, err = pods.Pods(others).Patch(t.Context(), older.Name, kind, patch, metav1.PatchOptions{}, "ephemeralcontainers")
			refused(t, err, "PG001")
		}
	})
	t.Run("by kubectl debug", func(t *testing.T) {
		kubectl, err := at(t).api.Kubectl(shared.tools, at(t).api.Config)
		if err != nil {
			t.Fatal(err)
		}
		custom := filepath.Join(t.TempDir(), "custom.json")
		if err := os.WriteFile(custom, []byte(`{"volumeMounts": [{"name": "v0", "mountPath": "C:\\mounted"}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		debug := []string{"debug", "-n", others, "pod/" + older.Name, "--image", image, "--profile", "general", "--custom", custom}
		_, stderr, code, err := kubectl.Run(t.Context(), "", debug...)
		if err != nil || code == 0 || !strings.Contains(stderr, "PG001: ephemeral container") {
			t.Errorf("exit code %d, %v: %s", code, err, stderr)
		}
	})
	t.Run("not even beside a pipe that it does not mount", func(t *testing.T) {
		p := older.DeepCopy()
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("debug", false)}
		_, err := pods.Pods(others).UpdateEphemeralContainers(t.Context(), p.Name, p, metav1.UpdateOptions{})
		refused(t, err, "PG002")
	})
	t.Run("but the driver's does", func(t *testing.T) {
		p := own.DeepCopy()
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("debug", true)}
		if _, err := pods.Pods(drivers).UpdateEphemeralContainers(t.Context(), p.Name, p, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("and where there is no pipe nothing is in the way", func(t *testing.T) {
		p := ordinary.DeepCopy()
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{debugger("debug", true)}
		if _, err := pods.Pods(others).UpdateEphemeralContainers(t.Context(), p.Name, p, metav1.UpdateOptions{}); err != nil {
			t.Error(err)
		}
	})
	got := &corev1.Pod{}
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(older), got); err != nil || len(got.Spec.EphemeralContainers) != 0 {
		t.Errorf("stored: %+v, %v", got.Spec.EphemeralContainers, err)
	}
}
