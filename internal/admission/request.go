package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// ObjectReview makes the request that the API server would send if the object in raw, of any judged kind and as JSON,
// were created, without a user. An object without namespace goes to "default" if its kind has namespaces. The
// uid is a hash of raw, so that equal objects give equal requests.
func ObjectReview(raw []byte) (*admissionv1.AdmissionRequest, error) {
	kind, err := kindOf(raw)
	if err != nil {
		return nil, fmt.Errorf("review an object: %w", err)
	}
	obj, err := readObject(raw, kind, jsonscan.Allow(heavyReview))
	if err != nil {
		return nil, fmt.Errorf("review a %s: %w", plain(kind.Kind, maxName), err)
	}
	sum := sha256.Sum256(raw)
	resource := metav1.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: obj.rules.resource}
	req := &admissionv1.AdmissionRequest{
		UID:             types.UID(hex.EncodeToString(sum[:16])),
		Kind:            kind,
		Resource:        resource,
		RequestKind:     &kind,
		RequestResource: &resource,
		Name:            obj.meta.name,
		Namespace:       obj.meta.namespace,
		Operation:       admissionv1.Create,
		Object:          runtime.RawExtension{Raw: raw},
	}
	switch {
	case obj.rules.isCluster:
		req.Namespace = ""
	case req.Namespace == "":
		req.Namespace = metav1.NamespaceDefault
	}
	return req, nil
}

// kindOf reads an object's own apiVersion and kind.
func kindOf(raw []byte) (metav1.GroupVersionKind, error) {
	apiVersion, kind := "", ""
	r := jsonscan.NewReader(raw)
	r.Members(jsonscan.Text("apiVersion", &apiVersion), jsonscan.Text("kind", &kind))
	if r.End(); r.Err() != nil {
		return metav1.GroupVersionKind{}, fmt.Errorf("read the object: %w", r.Err())
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return metav1.GroupVersionKind{}, fmt.Errorf("apiVersion %s: want group/version", quote(apiVersion, maxName))
	}
	return metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: kind}, nil
}
