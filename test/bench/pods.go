//go:build linux

package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Kinds of pods.
const (
	plain   = "plain"   // no hostPath at all, as nearly every pod
	driver  = "driver"  // a CSI driver's, with six pipes, where it may have them
	refused = "refused" // the same where it may not
)

var kinds = []string{plain, driver, refused}

// driverAccount is the service account that may have the pipes.
const driverAccount = "csi-azuredisk-node-sa"

// pod is one of a kind in one of a variant's two namespaces.
func pod(variant, kind string) *corev1.Pod {
	p := plainPod()
	p.Namespace, p.GenerateName = namespaceOf(variant, kind), kind+"-"
	if kind == plain {
		return p
	}
	p.Spec.ServiceAccountName = driverAccount
	p.Spec.Containers[0].Name = "azuredisk"
	for _, name := range []string{
		"filesystem-v1", "disk-v1", "volume-v1", "filesystem-v1beta1", "disk-v1beta2", "volume-v1beta2",
	} {
		name = "csi-proxy-" + name
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: `\\.\pipe\` + name}}})
		p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: name, MountPath: `\\.\pipe\` + name})
	}
	return p
}

// plainPod has two containers with what they usually have.
func plainPod() *corev1.Pod {
	env := []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}}
	for _, key := range []string{"catalog", "cart", "checkout", "payment", "search", "session"} {
		env = append(env, corev1.EnvVar{Name: "SHOP_" + key, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}, Key: key}}})
	}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "web", "app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop", "pod-template-hash": "5d8f9c7b6"},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
		},
		Spec: corev1.PodSpec{
			Volumes: []corev1.Volume{
				{Name: "cache", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}},
			},
			Containers: []corev1.Container{
				{
					Name: "web", Image: "registry.example.com/shop/web:1.24.3", Args: []string{"--listen=:8080", "--log-level=info"}, Env: env,
					Ports: []corev1.ContainerPort{{ContainerPort: 8080}},
					Resources: corev1.ResourceRequirements{
						Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("256Mi")},
					},
					VolumeMounts:  []corev1.VolumeMount{{Name: "cache", MountPath: "/var/cache/web"}, {Name: "settings", MountPath: "/etc/web", ReadOnly: true}},
					LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}},
				},
				{Name: "metrics", Image: "registry.example.com/shop/metrics:0.9", Ports: []corev1.ContainerPort{{ContainerPort: 9090}}},
			},
		},
	}
}

// marshal encodes what always can be.
func marshal(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // nothing here has a type that JSON lacks
	}
	return raw
}
