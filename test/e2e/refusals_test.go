//go:build e2e

package e2e_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/test/harness"
)

func refusesPipes(t *testing.T) {
	for claim, path := range map[string]string{
		"as drivers spell it":    diskPipe,
		"with slashes":           `//./pipe/csi-proxy-disk-v1`,
		"in capitals":            `\\.\PIPE\CSI-PROXY-DISK-V1`,
		"as a device":            `\\?\GLOBALROOT\Device\NamedPipe\csi-proxy-disk-v1`,
		"through a share":        `\\localhost\pipe\csi-proxy-disk-v1`,
		"through a directory up": `\\.\x\..\pipe\csi-proxy-disk-v1`,
		"all pipes at once":      `\\.\pipe\`,
	} {
		t.Run(claim, func(t *testing.T) {
			mustRefuse(t, pod("default", "evil", mounts(path), onWindows), "PG00", `container "main"`, "spec.containers[0].volumeMounts[0]")
		})
	}
	t.Run("declared and not mounted", func(t *testing.T) {
		mustRefuse(t, pod("default", "evil", declares(diskPipe), onWindows), "PG002", "spec.volumes[0]")
	})
	t.Run("in a template", func(t *testing.T) {
		mustRefuse(t, daemonSet(pod("default", "evil", mounts(diskPipe), onWindows)), "PG001", "spec.template.spec")
		job := &batchv1.CronJob{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "evil"},
			Spec: batchv1.CronJobSpec{Schedule: "0 0 * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				Template: corev1.PodTemplateSpec{Spec: pod("default", "evil", mounts(diskPipe), onWindows).Spec},
			}}},
		}
		job.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		mustRefuse(t, job, "PG001", "spec.jobTemplate.spec.template.spec")
	})
	t.Run("as a PersistentVolume", func(t *testing.T) {
		mustRefuse(t, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "evil"},
			Spec: corev1.PersistentVolumeSpec{
				Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: diskPipe}},
			},
		}, "PG007", "spec.hostPath.path")
	})
	t.Run("in kubectl's words", func(t *testing.T) {
		_, err := shared.Kubectl(t.Context(), "run", "evil", "--image=example.com/evil", "--overrides",
			`{"spec": {"containers": [{"name": "evil", "image": "example.com/evil", "volumeMounts": [{"name": "p", "mountPath": "/p"}]}],
			"volumes": [{"name": "p", "hostPath": {"path": "\\\\.\\pipe\\csi-proxy-disk-v1"}}]}}`)
		if err == nil || !strings.Contains(err.Error(), "PG001") {
			t.Errorf("kubectl run is %v, want a refusal with PG001", err)
		}
	})
	t.Run("by privilege alone with a warning", func(t *testing.T) {
		out, err := shared.Kubectl(t.Context(), "run", "privileged", "--image=example.com/x", "--dry-run=server", "--overrides",
			`{"spec": {"containers": [{"name": "privileged", "image": "example.com/x", "securityContext": {"privileged": true}, "volumeMounts": [{"name": "p", "mountPath": "/p"}]}],
			"volumes": [{"name": "p", "hostPath": {"path": "\\\\.\\pipe\\csi-proxy-disk-v1"}}]}}`)
		if err != nil || !strings.Contains(out, "Warning:") || !strings.Contains(out, "PG004") {
			t.Errorf("the answer is %q, %v, want a warning with PG004", out, err)
		}
	})
}

func ordinaryPodsRun(t *testing.T) {
	plain := pod("default", "plain")
	mustAdmit(t, plain)
	// What CNI and kube-proxy mount: the webhook is not even asked.
	linux := pod("default", "linux", mounts("/var/lib/cni"), mounts("/run"), privileged, hostNetwork)
	mustAdmit(t, linux)
	harness.Eventually(t, readyLimit, "an ordinary pod runs", running(plain))
	harness.Eventually(t, readyLimit, "a pod with Linux paths runs", running(linux))
}
