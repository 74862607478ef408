//go:build !windows

package integration

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/test/routes"
)

const (
	pipe    = `\\.\pipe\csi-proxy-filesystem-v1`
	image   = "example.com/app:v1"
	mounted = `C:\mounted`
)

// spec is a pod's with one container that mounts each of the host's paths.
func spec(account string, paths ...string) corev1.PodSpec {
	out := corev1.PodSpec{
		ServiceAccountName:           account,
		AutomountServiceAccountToken: new(false),
		Containers:                   []corev1.Container{{Name: "app", Image: image}},
	}
	for i, path := range paths {
		name := fmt.Sprintf("v%d", i)
		out.Volumes = append(out.Volumes, hostPath(name, path))
		out.Containers[0].VolumeMounts = append(out.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: mounted + name})
	}
	return out
}

func hostPath(name, path string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
}

func pod(namespace, account string, paths ...string) *corev1.Pod {
	return named(&corev1.Pod{Spec: spec(account, paths...)}, namespace)
}

func template(account string, paths ...string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: routes.Labels()}, Spec: spec(account, paths...)}
}

// volume is a PersistentVolume with a source.
func volume(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	return named(routes.Volume(source), "")
}
