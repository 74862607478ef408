//go:build linux

package main

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
)

// What the API server could not send measures nothing.
func TestShapesAreReviews(t *testing.T) {
	for _, s := range shapes() {
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal([]byte(s.text), &review); err != nil || review.Request == nil || len(review.Request.Object.Raw) == 0 {
			t.Errorf("%d %s: %v", s.n, s.name, err)
		}
		if len(s.text) < s.n && s.name != "mounts of volumes of one name" {
			t.Errorf("%d %s in %d bytes", s.n, s.name, len(s.text))
		}
	}
}
