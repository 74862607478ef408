package scan

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// kind is one kind of object that is listed.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   string
	namespaced bool
}

// judgedKinds are the kinds that are judged.
func judgedKinds() (out []kind) {
	for _, r := range admission.Resources() {
		out = append(out, kind{schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}, r.Name, r.Namespaced})
	}
	return out
}

// Kinds of the reports. The one without a namespace has a kind of its own and otherwise the same shape.
func reportKind() kind {
	return kind{v1alpha1.GroupVersion().WithKind("PipeReport"), "pipereports", true}
}

func clusterReportKind() kind {
	return kind{v1alpha1.GroupVersion().WithKind("ClusterPipeReport"), "clusterpipereports", false}
}

// path is the address of the kind's objects: of one namespace, or of all if namespace is "".
func (k kind) path(namespace string) string {
	p := "/api/" + k.gvk.Version
	if k.gvk.Group != "" {
		p = "/apis/" + k.gvk.Group + "/" + k.gvk.Version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	return p + "/" + k.resource
}

// apiVersion is the kind's group and version, as objects write it.
func (k kind) apiVersion() string { return k.gvk.GroupVersion().String() }
