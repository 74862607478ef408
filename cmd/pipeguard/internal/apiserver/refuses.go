package apiserver

import (
	"errors"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// object is a kind that is judged, with the way to its paths.
type object struct {
	into any
	pod  func() (at string, spec *corev1.PodSpec) // nil for a PersistentVolume
}

func objectOf(kind string) (object, bool) {
	spec := func(into any, at string, spec *corev1.PodSpec) (object, bool) {
		return object{into, func() (string, *corev1.PodSpec) { return at, spec }}, true
	}
	switch kind {
	case "Pod":
		o := &corev1.Pod{}
		return spec(o, "spec", &o.Spec)
	case "PodTemplate":
		o := &corev1.PodTemplate{}
		return spec(o, "template.spec", &o.Template.Spec)
	case "ReplicationController":
		o := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}}
		return object{o, func() (string, *corev1.PodSpec) {
			if o.Spec.Template == nil {
				return "", nil
			}
			return "spec.template.spec", &o.Spec.Template.Spec
		}}, true
	case "Deployment":
		o := &appsv1.Deployment{}
		return spec(o, "spec.template.spec", &o.Spec.Template.Spec)
	case "DaemonSet":
		o := &appsv1.DaemonSet{}
		return spec(o, "spec.template.spec", &o.Spec.Template.Spec)
	case "StatefulSet":
		o := &appsv1.StatefulSet{}
		return spec(o, "spec.template.spec", &o.Spec.Template.Spec)
	case "ReplicaSet":
		o := &appsv1.ReplicaSet{}
		return spec(o, "spec.template.spec", &o.Spec.Template.Spec)
	case "Job":
		o := &batchv1.Job{}
		return spec(o, "spec.template.spec", &o.Spec.Template.Spec)
	case "CronJob":
		o := &batchv1.CronJob{}
		return spec(o, "spec.jobTemplate.spec.template.spec", &o.Spec.JobTemplate.Spec.Template.Spec)
	case "PersistentVolume":
		return object{into: &corev1.PersistentVolume{}}, true
	}
	return object{}, false
}

// Refuses returns why an API server refuses an object of a kind of admission.Kinds, in version v1 and as JSON; nil if it
// knows no reason. An unknown field is one, as it is for kubectl and for fieldValidation Strict: an API server that is told
// otherwise drops the field, and stores another object than the one that was written.
func Refuses(kind metav1.GroupVersionKind, raw []byte) error {
	o, ok := objectOf(kind.Kind)
	if !ok {
		return nil
	}
	strict, err := json.UnmarshalStrict(raw, o.into)
	if err != nil {
		return refusal(err)
	}
	faults := make([]error, 0, len(strict))
	for _, fault := range strict {
		faults = append(faults, errors.New(withRemedy(o.into, fault.Error())))
	}
	if v, ok := o.into.(*corev1.PersistentVolume); ok {
		faults = append(faults, volumePaths(v)...)
	} else {
		faults = append(faults, podPaths(o.pod())...)
	}
	return refusal(errors.Join(faults...))
}

func refusal(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the API server refuses this object: %s", strings.ReplaceAll(err.Error(), "\n", "; "))
}

// podPaths are the rules of validateHostPathVolumeSource and validateLocalDescendingPath in
// k8s.io/kubernetes/pkg/apis/core/validation.
func podPaths(at string, spec *corev1.PodSpec) (faults []error) {
	if spec == nil {
		return nil
	}
	for i, v := range spec.Volumes {
		if v.HostPath != nil {
			faults = append(faults, noBacksteps(fmt.Sprintf("%s.volumes[%d].hostPath.path", at, i), v.HostPath.Path)...)
		}
	}
	mounts := func(at string, mounts []corev1.VolumeMount) {
		for i, m := range mounts {
			faults = append(faults, descending(fmt.Sprintf("%s.volumeMounts[%d].subPath", at, i), m.SubPath)...)
			faults = append(faults, descending(fmt.Sprintf("%s.volumeMounts[%d].subPathExpr", at, i), m.SubPathExpr)...)
		}
	}
	for i, c := range spec.InitContainers {
		mounts(fmt.Sprintf("%s.initContainers[%d]", at, i), c.VolumeMounts)
	}
	for i, c := range spec.Containers {
		mounts(fmt.Sprintf("%s.containers[%d]", at, i), c.VolumeMounts)
	}
	for i, c := range spec.EphemeralContainers {
		mounts(fmt.Sprintf("%s.ephemeralContainers[%d]", at, i), c.VolumeMounts)
	}
	return faults
}

func volumePaths(v *corev1.PersistentVolume) (faults []error) {
	if v.Spec.HostPath != nil {
		faults = append(faults, noBacksteps("spec.hostPath.path", v.Spec.HostPath.Path)...)
	}
	if v.Spec.Local != nil {
		faults = append(faults, noBacksteps("spec.local.path", v.Spec.Local.Path)...)
	}
	return faults
}

// noBacksteps looks for ".." between slashes. A backslash separates nothing here: the API server runs on Linux.
func noBacksteps(at, path string) []error {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return []error{fmt.Errorf("%s: must not contain '..'", at)}
		}
	}
	return nil
}

func descending(at, path string) (faults []error) {
	if strings.HasPrefix(path, "/") {
		faults = append(faults, fmt.Errorf("%s: must be a relative path", at))
	}
	return append(faults, noBacksteps(at, path)...)
}
