package admission

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pipeRoot is the directory of all pipes.
const pipeRoot = `\\.\pipe\`

// otherSpelling is a path of a pipe that has little in common with the usual one.
func otherSpelling(pipe string) string {
	return `//?/GLOBALROOT/Device/NamedPipe/` + strings.ToUpper(pipe)
}

// sample is an object that checks and canaries are made of.
type sample struct {
	kind   metav1.GroupVersionKind
	object map[string]any
}

// samplePod is a Pod with one container that mounts path from the host.
func samplePod(name, path string) sample {
	return sampleOf("", "Pod", name, podSpecOf(name, path))
}

// sampleDeployment is a Deployment of the same pods.
func sampleDeployment(name, path string) sample {
	return sampleOf("apps", "Deployment", name, map[string]any{"template": map[string]any{"spec": podSpecOf(name, path)}})
}

// sampleVolume is a PersistentVolume that leads to path.
func sampleVolume(name, path string) sample {
	return sampleOf("", "PersistentVolume", name, map[string]any{"hostPath": map[string]any{"path": path}})
}

// sampleTemplate is a PodTemplate of such pods.
func sampleTemplate(name, namespace, path string) sample {
	s := sampleOf("", "PodTemplate", name, nil)
	delete(s.object, "spec")
	s.object["metadata"] = map[string]any{"name": name, "namespace": namespace}
	s.object["template"] = map[string]any{"spec": podSpecOf(name, path)}
	return s
}

func sampleOf(group, kind, name string, spec map[string]any) sample {
	gvk := metav1.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
	return sample{gvk, map[string]any{
		"apiVersion": apiVersionOf(gvk), "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

func podSpecOf(name, path string) map[string]any {
	return map[string]any{
		"containers": []any{map[string]any{
			"name":         name,
			"image":        "example.com/" + name,
			"volumeMounts": []any{map[string]any{"name": "pipe", "mountPath": `\\.\pipe\mounted`}},
		}},
		"volumes": []any{map[string]any{"name": "pipe", "hostPath": map[string]any{"path": path}}},
	}
}

// unmounted takes the mount from the spec of a samplePod.
func (s sample) unmounted() sample {
	if spec, ok := s.object["spec"].(map[string]any); ok {
		spec["containers"] = []any{map[string]any{"name": "canary", "image": "example.com/canary"}}
	}
	return s
}
