package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/test/harness"
)

// deadline bounds every wait of these tests; a machine that is busy with other tests may need much of it.
const deadline = 3 * time.Minute // an activation takes twenty seconds with the race detector on a machine that does nothing else

// webhookProcess is a webhook that runs inside the test.
type webhookProcess struct {
	*server
	client *http.Client
	url    string
	stdout *bytes.Buffer // only to be read after stop
	logs   *observer.ObservedLogs
	stop   func() error
}

// newTestServer makes the parts for a command line, on free ports.
func newTestServer(t *testing.T, args ...string) (*server, *bytes.Buffer, *observer.ObservedLogs, error) {
	t.Helper()
	var s *server
	stdout := &bytes.Buffer{}
	core, logs := observer.New(zap.DebugLevel)
	cmd := newCommand(func(o options) (err error) {
		s, err = newServer(t.Context(), o, stdout, zap.New(core))
		return err
	})
	cmd.SetArgs(append([]string{"--standalone", "--listen-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0",
		"--health-probe-bind-address=127.0.0.1:0"}, args...))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return s, stdout, logs, err
}

// start runs a webhook with a copy of the default policy until it is ready, and stops it at the end of the test.
func start(t *testing.T, args ...string) *webhookProcess {
	t.Helper()
	return startBuiltIn(t, append([]string{"--policy-dir=" + copyPolicy(t)}, args...)...)
}

// startBuiltIn does so with the built-in policy, unless the arguments name another.
func startBuiltIn(t *testing.T, args ...string) *webhookProcess {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	return startWith(t, ca, append([]string{"--write-ca=" + ca}, args...)...)
}

// startWith does so with a client that trusts the authority in the file ca.
func startWith(t *testing.T, ca string, args ...string) *webhookProcess {
	t.Helper()
	s, stdout, logs, err := newTestServer(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("no certificate in %q", text)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	p := &webhookProcess{server: s, client: &http.Client{Transport: transport, Timeout: deadline}, url: "https://" + s.webhook.address() + validatePath, stdout: stdout, logs: logs}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	var result error
	stopped := false
	p.stop = func() error {
		if !stopped {
			stopped = true
			transport.CloseIdleConnections()
			cancel()
			result = <-ended
		}
		return result
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("the webhook ended with: %v", err)
		}
	})
	select {
	case <-s.readiness.first:
	case err := <-ended:
		ended <- err
		t.Fatalf("the webhook ended before it was ready: %v", err)
	case <-time.After(deadline):
		t.Fatalf("not ready in %s: %v", deadline, *s.readiness.fault.Load())
	}
	return p
}

// get asks a plain endpoint.
func (p *webhookProcess) get(t *testing.T, endpoint, path string) (int, string) {
	t.Helper()
	for _, e := range p.endpoints {
		if e.name != endpoint {
			continue
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+e.address()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err := errorsJoin(err, res.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	t.Fatalf("no endpoint %s", endpoint)
	return 0, ""
}

func errorsJoin(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// post sends a body to the webhook over TLS.
func (p *webhookProcess) post(t *testing.T, body string) (int, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(res.Body)
	if err := errorsJoin(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, answer
}

// review asks about a pod of a namespace that mounts path.
func (p *webhookProcess) review(t *testing.T, namespace, path string) *admissionv1.AdmissionResponse {
	t.Helper()
	object := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"demo"},"spec":{"serviceAccountName":"driver",
		"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"x"}]}],"volumes":[{"name":"v","hostPath":{"path":%q}}]}}`, path)
	status, answer := p.post(t, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u-1","operation":"CREATE",
		"kind":{"group":"","version":"v1","kind":"Pod"},"namespace":"`+namespace+`","name":"demo","object":`+object+`}}`)
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(answer, &review); err != nil || status != http.StatusOK || review.Response == nil || review.Response.UID != "u-1" {
		t.Fatalf("status %d, %q: %v", status, answer, err)
	}
	return review.Response
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	harness.Eventually(t, deadline, what, func(context.Context) error {
		if !ask() {
			return errors.New("not yet")
		}
		return nil
	})
}

// configFile writes a file for --config with these fields, and returns the flag.
func configFile(t *testing.T, fields string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "webhook.yaml")
	harness.Replace(t, file, "apiVersion: pipeguard.dev/v1alpha1\nkind: WebhookConfig\n"+fields)
	return "--config=" + file
}

// inCluster sets what a pod has in its environment.
func inCluster(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "n")
	t.Setenv("POD_NAME", "p")
}

const pipe = `\\.\pipe\csi-proxy-filesystem-v1`
