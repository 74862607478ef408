package admission

import (
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// Outline is what an object says of its pods, for people who ask what these reach on a node. No decision rests on it.
type Outline struct {
	ServiceAccount string
	HostNetwork    bool
	// Containers have no Access.
	Containers []Container
	// HostPaths are all of the object's hostPath volumes.
	HostPaths []HostPath
	// Annotations are the keys of the pods' annotations that a container runtime may obey, sorted.
	Annotations []string
	// Field is the path of the pod spec in the object, MetadataField that of the pods' metadata.
	Field, MetadataField string
}

// HostPath is a hostPath volume, guarded or not.
type HostPath struct {
	Volume, Path string
	// Containers are the fields of the containers that mount it.
	Containers []string
	Field      string
}

// OutlineOf reads the object of a request as Review does. An object without pods has neither containers nor host paths.
func OutlineOf(req *admissionv1.AdmissionRequest) (Outline, error) {
	obj, err := readObject(req.Object.Raw, req.Kind, jsonscan.Allow(heavyReview))
	if err != nil || !obj.rules.holdsPods() {
		return Outline{}, err
	}
	spec, pod, field := &obj.pod, obj.podMeta(), obj.rules.podField()
	out := Outline{ServiceAccount: spec.serviceAccount, HostNetwork: spec.hostNetwork, Field: field, MetadataField: obj.rules.podMetadataField()}
	mounting := map[string][]string{} // fields of containers, by the names of volumes
	for c, mounts := range spec.all(field) {
		out.Containers = append(out.Containers, c)
		for _, m := range mounts {
			if fields := mounting[m.volume]; len(fields) == 0 || fields[len(fields)-1] != c.Field {
				mounting[m.volume] = append(fields, c.Field)
			}
		}
	}
	for _, v := range spec.hostPaths {
		out.HostPaths = append(out.HostPaths, HostPath{
			Volume: v.name, Path: v.path, Containers: mounting[v.name], Field: v.field(field),
		})
	}
	for _, key := range sortedKeys(pod.annotations) {
		if isRuntimeAnnotation(key) {
			out.Annotations = append(out.Annotations, key)
		}
	}
	return out, nil
}
