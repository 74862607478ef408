package admission

import (
	"bytes"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// input puts together what the request, the object and the extraction say.
func (s *Scope) input(req *admissionv1.AdmissionRequest, obj *object, e *extraction, of NamespaceLabels, now time.Time, a *jsonscan.Allowance) (*Input, error) {
	pod := obj.podMeta()
	in := &Input{
		Schema:         Schema,
		Now:            instant(now),
		Operation:      string(req.Operation),
		Kind:           Kind(req.Kind),
		Subresource:    req.SubResource,
		Namespace:      req.Namespace,
		Name:           objectName(req, obj),
		ServiceAccount: obj.pod.serviceAccount,
		User:           User{Name: req.UserInfo.Username, Groups: req.UserInfo.Groups},
		Labels:         obj.meta.labels,
		Annotations:    obj.meta.annotations,
		Pod:            PodMeta{Labels: pod.labels, Annotations: pod.annotations, Field: obj.rules.podMetadataField(), HostNetwork: obj.pod.hostNetwork},
		Containers:     e.containers,
		Mounts:         e.mounts,
		Unmounted:      e.unmounted,

		PersistentVolumes: e.persistent,
	}
	switch {
	case obj.rules.isCluster:
		in.Namespace = ""
	case of != nil:
		in.NamespaceLabels = of.Labels(req.Namespace)
	}
	return in, s.permits(in, now, a)
}

// objectName is the name of the object, or what its name will begin with.
func objectName(req *admissionv1.AdmissionRequest, obj *object) string {
	switch {
	case req.Name != "":
		return req.Name
	case obj.meta.name != "":
		return obj.meta.name
	case obj.meta.generateName != "":
		return obj.meta.generateName + "*"
	}
	return ""
}

// objectValue is the whole object as OPA wants it.
func objectValue(raw []byte) (ast.Value, error) {
	v, err := ast.ValueFromReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("convert the object: %w", err)
	}
	return v, nil
}

// instant is a time as policies receive it: in UTC, without parts of a second.
func instant(t time.Time) string { return t.UTC().Format(expiryLayout) }
