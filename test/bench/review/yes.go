//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	admissionv1 "k8s.io/api/admission/v1"
)

// sayYes is the least that a webhook can do: it decodes the uid and says yes. It writes its URL when it can be asked, and ends with ctx.
func sayYes(ctx context.Context) error {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var review struct{ Request struct{ UID string } }
		if err := json.Unmarshal(body, &review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // else the sender has gone
			"apiVersion": admissionv1.SchemeGroupVersion.String(), "kind": "AdmissionReview",
			"response": map[string]any{"uid": review.Request.UID, "allowed": true},
		})
	}))
	defer server.Close()
	fmt.Println(server.URL)
	<-ctx.Done()
	return nil
}
