package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/test/harness"
)

func TestProbeAsksARunningWebhook(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	p := startWith(t, ca, "--write-ca="+ca, "--policy-dir="+copyPolicy(t))
	var out, errOut bytes.Buffer
	if code := execute(t.Context(), []string{"probe", "--url=" + p.url, "--ca-file=" + ca}, &out, &errOut); code != 0 {
		t.Fatalf("exit code %d: %s", code, errOut.String())
	}
	for _, want := range []string{"a pod that mounts the directory of all pipes: refused: Pipeguard refuses Pod", "a pod that mounts nothing: admitted"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output %q, want %q in it", out.String(), want)
		}
	}
}

// answering serves one answer to every request, over TLS, and returns its address and the file of its authority.
func answering(t *testing.T, status int, answer string) (url, ca string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	harness.Replace(t, ca, harness.CertificatePEM(server.Certificate()))
	return server.URL, ca
}

func TestProbeFailsUnlessBothAnswersAreRight(t *testing.T) {
	answer := func(response string) string {
		return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":` + response + `}`
	}
	other := filepath.Join(t.TempDir(), "other.pem")
	if err := os.WriteFile(other, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	stranger, err := newIssuer([]string{"localhost"}, time.Now, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "foreign.pem")
	if err := stranger.writeAuthority(foreign); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		status int
		answer string
		ca     string
	}{
		"everything is admitted":         {200, answer(`{"uid":"pipeguard-probe","allowed":true}`), ""},
		"everything is refused":          {200, answer(`{"uid":"pipeguard-probe","allowed":false,"status":{"message":"no"}}`), ""},
		"a refusal without a status":     {200, answer(`{"uid":"pipeguard-probe","allowed":false}`), ""},
		"the answer to another review":   {200, answer(`{"uid":"x","allowed":false,"status":{}}`), ""},
		"no answer":                      {200, answer(`null`), ""},
		"an answer that is no JSON":      {200, `<html>`, ""},
		"an HTTP error":                  {503, "too many", ""},
		"a file without a certificate":   {200, "", other},
		"a file that is not there":       {200, "", "/nonexistent/ca"},
		"an authority of someone else's": {200, answer(`{"uid":"pipeguard-probe","allowed":true}`), foreign},
	} {
		t.Run(name, func(t *testing.T) {
			url, ca := answering(t, c.status, c.answer)
			if c.ca != "" {
				ca = c.ca
			}
			var out, errOut bytes.Buffer
			if code := execute(t.Context(), []string{"probe", "--url=" + url, "--ca-file=" + ca}, &out, &errOut); code != exitFailure {
				t.Errorf("exit code %d: %s%s", code, out.String(), errOut.String())
			}
		})
	}
}
