// Package routes holds the ways by which a host path gets into a pod: the objects that make one, for tests against an API server.
package routes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// Labels are what selectors of templates select.
func Labels() map[string]string { return map[string]string{"app": "app"} }

func once(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	return t
}

// as is an object as the type that its Workload made.
func as[T client.Object](o client.Object) T {
	made, ok := o.(T)
	if !ok {
		panic(fmt.Sprintf("%T is of another Workload", o))
	}
	return made
}

// Workload is a kind with a pod template.
type Workload struct {
	Kind  string
	Field string // of the template
	Make  func(corev1.PodTemplateSpec) client.Object
	// Template is where the object has it; nil where the API server lets nobody change it.
	Template func(client.Object) *corev1.PodTemplateSpec
}

// Workloads are all kinds whose pods the guard judges by their template.
func Workloads() []Workload {
	selector := &metav1.LabelSelector{MatchLabels: Labels()}
	return []Workload{
		{"Deployment", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &as[*appsv1.Deployment](o).Spec.Template }},
		{"DaemonSet", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &as[*appsv1.DaemonSet](o).Spec.Template }},
		{"StatefulSet", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &as[*appsv1.StatefulSet](o).Spec.Template }},
		{"ReplicaSet", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &appsv1.ReplicaSet{Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec { return &as[*appsv1.ReplicaSet](o).Spec.Template }},
		{"ReplicationController", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Selector: Labels(), Template: &t}}
			},
			func(o client.Object) *corev1.PodTemplateSpec {
				return as[*corev1.ReplicationController](o).Spec.Template
			}},
		{"Job", "spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &batchv1.Job{Spec: batchv1.JobSpec{Template: once(t)}}
			}, nil},
		{"CronJob", "spec.jobTemplate.spec.template",
			func(t corev1.PodTemplateSpec) client.Object {
				return &batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: once(t)}}}}
			},
			func(o client.Object) *corev1.PodTemplateSpec {
				return &as[*batchv1.CronJob](o).Spec.JobTemplate.Spec.Template
			}},
		{"PodTemplate", "template",
			func(t corev1.PodTemplateSpec) client.Object { return &corev1.PodTemplate{Template: t} },
			func(o client.Object) *corev1.PodTemplateSpec { return &as[*corev1.PodTemplate](o).Template }},
	}
}

// Of are a pod of a template, and every workload with the template, without names.
func Of(template corev1.PodTemplateSpec) []client.Object {
	all := []client.Object{&corev1.Pod{Spec: template.Spec}}
	for _, w := range Workloads() {
		all = append(all, w.Make(template))
	}
	return all
}

// Volume is a PersistentVolume with a source, and without a name.
func Volume(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
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
	return v
}

// OnHost is the source of a volume that is a path of the node.
func OnHost(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}
}

// Local is the source of a local volume.
func Local(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: path}}
}

// Opening is an object that leads to a guarded pipe. It has a name, and its template is of one container with one mount.
type Opening struct {
	Object            client.Object
	HostPath, SubPath string
}

// Openings are all spellings of a pipe by all routes, in a namespace. None may be admitted there.
func Openings(t testing.TB, namespace string) (all []Opening) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "internal", "core", "pipepath", "testdata", "pipe-path-vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		HostPath, SubPath string
		Match             bool
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		if !v.Match {
			continue
		}
		for _, o := range openings(v.HostPath, v.SubPath) {
			o.SetNamespace(namespace)
			o.SetName(fmt.Sprintf("opening-%d", len(all)))
			if _, ok := o.(*corev1.PersistentVolume); ok {
				o.SetNamespace("")
			}
			all = append(all, Opening{o, v.HostPath, v.SubPath})
		}
	}
	if len(all) < 500 {
		t.Fatalf("there are only %d openings", len(all))
	}
	return all
}

func openings(path, subPath string) []client.Object {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: Labels()},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "registry.example/app:v1", VolumeMounts: []corev1.VolumeMount{{Name: "opening", MountPath: "/opening", SubPath: subPath}}}},
			Volumes:    []corev1.Volume{{Name: "opening", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}},
		},
	}
	all := Of(template)
	if subPath == "" { // a volume has none
		all = append(all, Volume(OnHost(path)), Volume(Local(path)))
	}
	return all
}
