package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A webhook that gives the same answer to everything makes a story that does not go as announced.
func TestTheStoryNoticesAWebhookThatIsWrong(t *testing.T) {
	denial := &metav1.Status{
		Message: "PG001 no", Reason: metav1.StatusReasonForbidden,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec"}}},
	}
	for name, c := range map[string]struct {
		response admissionv1.AdmissionResponse
		failures int
	}{
		// Nine steps send a pod, one sends text that is no review, and this webhook answers that with 200 too.
		"one that admits everything":          {admissionv1.AdmissionResponse{Allowed: true}, 7},
		"one that warns of everything":        {admissionv1.AdmissionResponse{Allowed: true, Warnings: []string{"PG004"}}, 9},
		"one that refuses everything":         {admissionv1.AdmissionResponse{Result: denial}, 10},
		"one that refuses without a word":     {admissionv1.AdmissionResponse{}, 10},
		"one that refuses without any causes": {admissionv1.AdmissionResponse{Result: &metav1.Status{Message: "PG001"}}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var review admissionv1.AdmissionReview
				if err := json.NewDecoder(r.Body).Decode(&review); err == nil {
					c.response.UID = review.Request.UID
				}
				response := c.response
				if err := json.NewEncoder(w).Encode(admissionv1.AdmissionReview{Response: &response}); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			s := &story{out: io.Discard}
			admission(t.Context(), s, &apiServer{client: server.Client(), url: server.URL})
			if len(s.failed) != c.failures || s.steps != 10 {
				t.Errorf("%d of %d steps failed, want %d of 10: %q", len(s.failed), s.steps, c.failures, s.failed)
			}
		})
	}
}

func TestAnAnswerToAnotherRequestIsNoAnswer(t *testing.T) {
	for name, body := range map[string]string{
		"another uid": `{"response": {"uid": "x", "allowed": true}}`,
		"no response": `{}`,
		"no JSON":     `allowed`,
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if _, err := io.WriteString(w, body); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			api := &apiServer{client: server.Client(), url: server.URL}
			if r, err := api.create(t.Context(), "ordinary.yaml"); err == nil {
				t.Errorf("taken for an answer: %v", r)
			}
		})
	}
}

func TestACallThatEndsOtherwiseIsNoticed(t *testing.T) {
	denied := status.Error(codes.PermissionDenied, "Rmdir is denied")
	for name, c := range map[string]struct {
		err  error
		want codes.Code
		word string
	}{
		"success":              {nil, codes.PermissionDenied, ""},
		"another code":         {denied, codes.NotFound, ""},
		"another message":      {denied, codes.PermissionDenied, "Mkdir"},
		"an error without one": {errors.New("x"), codes.PermissionDenied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if failedWith(c.err, c.want, c.word) == nil {
				t.Error("not noticed")
			}
		})
	}
	if err := failedWith(denied, codes.PermissionDenied, "Rmdir"); err != nil {
		t.Error(err)
	}
}

func TestAStoryThatDoesNotGoAsAnnouncedSaysSo(t *testing.T) {
	var out strings.Builder
	s := &story{out: &out}
	if s.step("a", "b", func() error { return errors.New("wrong") }) || len(s.failed) != 1 {
		t.Errorf("the step passed: %q", s.failed)
	}
	if !s.step("a", "b", func() error { return nil }) || len(s.failed) != 1 || s.steps != 2 {
		t.Errorf("the step failed: %q", s.failed)
	}
	if strings.ContainsRune(out.String(), '\x1b') {
		t.Errorf("colour without a terminal: %q", out.String())
	}
	if !strings.Contains(out.String(), "NOT as expected: wrong") {
		t.Errorf("output %q", out.String())
	}
}
