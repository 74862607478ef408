//go:build !windows

package integration

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// labelled is what selectors of templates select.
func labelled() map[string]string { return map[string]string{"app": "app"} }

func template(account string, paths ...string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labelled()}, Spec: spec(account, paths...)}
}

func once(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	return t
}

// workload is a kind with a pod template.
type workload struct {
	kind  string
	field string // of the template
	make  func(corev1.PodTemplateSpec) client.Object
	// template is where the object has it; nil where the API server lets nobody change it.
	template func(client.Object) *corev1.PodTemplateSpec
}

func workloads() []workload {
	selector := &metav1.LabelSelector{MatchLabels: labelled()}
	return []workload{
		{"Deployment", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.Deployment).Spec.Template }},
		{"DaemonSet", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.DaemonSet).Spec.Template }},
		{"StatefulSet", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.StatefulSet).Spec.Template }},
		{"ReplicaSet", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &o.(*appsv1.ReplicaSet).Spec.Template }},
		{"ReplicationController", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Selector: labelled(), Template: &t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return o.(*corev1.ReplicationController).Spec.Template }},
		{"Job", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &batchv1.Job{Spec: batchv1.JobSpec{Template: once(t)}}
			}, nil},
		{"CronJob", "spec.jobTemplate.spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once(t)}}}}
			},
			func(o client.Object) *corev1.PodTemplateSpec {
				return &o.(*batchv1.CronJob).Spec.JobTemplate.Spec.Template
			}},
		{"PodTemplate", "template",
			func(t corev1.PodTemplateSpec) client.Object { return &corev1.PodTemplate{Template: t} },
			func(o client.Object) *corev1.PodTemplateSpec { return &o.(*corev1.PodTemplate).Template }},
	}
}

// volume is a PersistentVolume with a source.
func volume(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: source,
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
	}}
	if source.Local != nil {
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}},
		}}}}
	}
	return named(v, "")
}

func onHost(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
}

func local(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}
}
