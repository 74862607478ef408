package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// PodReview makes the request that the API server would send if the Pod in raw, as JSON, were created.
// A Pod without namespace goes to "default". The uid is a hash of raw, so that equal Pods give equal requests.
func PodReview(raw []byte) (*admissionv1.AdmissionRequest, error) {
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	obj, err := readObject(raw, kind)
	if err != nil {
		return nil, fmt.Errorf("review a Pod: %w", err)
	}
	sum := sha256.Sum256(raw)
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
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
	if req.Namespace == "" {
		req.Namespace = metav1.NamespaceDefault
	}
	return req, nil
}
