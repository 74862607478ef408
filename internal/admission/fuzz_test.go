package admission

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/pipeguard/pipeguard/test/pods"
)

// FuzzServeHTTP holds the handler to two promises for any bytes: it answers, and it does not admit an object in which
// Kubernetes' own decoder finds a guarded pipe.
func FuzzServeHTTP(f *testing.F) {
	r := newReviewer(f, DefaultParameters())
	scope := scopeIn(f, r)
	for _, path := range paths {
		f.Add(reviewBody(f, createRequest(f, testPod(path))))
	}
	f.Add(reviewBody(f, updateRequest(f, testPod(csiPipe), testPod(csiPipe, csiPipe))))
	f.Add(reviewBody(f, createRequest(f, pods.Plain(f))))
	f.Add([]byte(podReview(`{"apiVersion":"v1","kind":"Pod","spec":{"volumes":[{"name":"v","\u0068ostPath":{"path":"\\\\.\\pipe\\csi-proxy"}}],
		"containers":[{"volumeMounts":[{"name":"v"}]}]}}`)))
	f.Add([]byte(podReview(`{"apiVersion":"v1","kind":"Pod","spec":{"Volumes":[{"name":"v","hostPath":{"path":"x"}}],"volumes":null}}`)))
	f.Add([]byte(podReview(emptyPod)))
	for seed := range uint64(20) {
		kind, raw := randomObject(f, rand.New(rand.NewPCG(seed, 3)))
		f.Add([]byte(reviewOf(kind, string(raw))))
	}
	f.Add(reviewBody(f, staticRequest(f, testPod(csiPipe))))
	f.Add([]byte(`{}`))
	f.Add([]byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", bytes.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		r.ServeHTTP(w, req)
		if w.Code == http.StatusInternalServerError {
			t.Fatalf("panic: %s", w.Body)
		}
		if w.Code != http.StatusOK {
			return
		}
		var answer admissionv1.AdmissionReview
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("the answer is no AdmissionReview: %v", err)
		}
		var asked admissionv1.AdmissionReview
		if err := kjson.Unmarshal(body, &asked); err != nil || asked.Request == nil {
			t.Fatalf("answered what Kubernetes cannot read: %v", err)
		}
		if answer.Response.UID != asked.Request.UID || asked.Request.UID == "" {
			t.Fatalf("uid %q in answer to %q", answer.Response.UID, asked.Request.UID)
		}
		if !answer.Response.Allowed {
			return
		}
		annotations := answer.Response.AuditAnnotations
		if annotations[annotationStatic] != "" && !strings.HasPrefix(asked.Request.UserInfo.Username, "system:node:") {
			t.Fatalf("admitted as a static pod of %q", asked.Request.UserInfo.Username)
		}
		// An update that changes nothing may pass with what it had.
		kind, raw := asked.Request.Kind.Kind, asked.Request.Object.Raw
		if annotations[annotationUnchanged] == "" && annotations[annotationStatic] == "" && holdsGuarded(scope, kind, raw) && privilegedNowhere(scope, kind, raw) {
			t.Fatalf("admitted a guarded pipe: %s", raw)
		}
	})
}

// privilegedNowhere says whether no container is privileged: by default, a privileged one may have pipes.
func privilegedNowhere(scope *Scope, kind string, raw []byte) bool {
	e, _, err := reference(scope, kind, raw)
	return err == nil && !slices.ContainsFunc(e.containers, func(c Container) bool { return c.Privileged })
}
