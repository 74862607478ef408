package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
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

	"github.com/pipeguard/pipeguard/internal/audit"
	builtin "github.com/pipeguard/pipeguard/policies"
)

// deadline bounds every wait of these tests; a machine that is busy with other tests may need much of it.
const deadline = time.Minute

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
		s, err = newServer(o, stdout, zap.New(core))
		return err
	})
	cmd.SetArgs(append([]string{"--standalone", "--listen-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0",
		"--health-probe-bind-address=127.0.0.1:0"}, args...))
	cmd.SetOut(io.Discard)
	cmd.SetErr(io.Discard)
	err := cmd.ExecuteContext(t.Context())
	return s, stdout, logs, err
}

// start runs a webhook until it is ready, and stops it at the end of the test.
func start(t *testing.T, args ...string) *webhookProcess {
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
	p := &webhookProcess{server: s, client: &http.Client{Transport: transport, Timeout: deadline}, url: "https://" + s.address + validatePath, stdout: stdout, logs: logs}
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

// eventually asks until the answer is yes. Each question is a request, so this does not spin.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); {
		if ask() {
			return
		}
	}
	t.Fatalf("not within %s: %s", deadline, what)
}

const pipe = `\\.\pipe\csi-proxy-filesystem-v1`

func write(t *testing.T, file, text string) {
	t.Helper()
	next := file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil { // never half a file
		t.Fatal(err)
	}
}

func TestTheProcessRefusesAdmitsRecordsAndStops(t *testing.T) {
	namespaces := filepath.Join(t.TempDir(), "namespaces.yaml")
	write(t, namespaces, "team-a: {team: a}\n")
	params := filepath.Join(t.TempDir(), "parameters.yaml")
	write(t, params, "allowedNamespaces: {drivers: {serviceAccounts: [driver]}}\n")
	p := start(t, "--namespaces="+namespaces, "--params="+params)

	denied := p.review(t, "team-a", `//./PIPE/csi-proxy-filesystem-v1`)
	if denied.Allowed || denied.Result.Code != 403 || !strings.Contains(denied.Result.Message, "PG001") {
		t.Errorf("an evasive spelling: %+v", denied)
	}
	if a := p.review(t, "drivers", pipe); !a.Allowed {
		t.Errorf("a driver: %+v", a.Result)
	}
	if a := p.review(t, "drivers", `\\.\pipe\`); a.Allowed {
		t.Error("the directory of all pipes was admitted")
	}
	if a := p.review(t, "team-a", `C:\data`); !a.Allowed || len(a.AuditAnnotations) != 0 {
		t.Errorf("a pod with nothing to decide: %+v", a)
	}
	if status, answer := p.post(t, "{}"); status != 400 {
		t.Errorf("status %d for what is no review: %s", status, answer)
	}

	if status, body := p.get(t, "health", "/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("/healthz: %d %q", status, body)
	}
	if status, body := p.get(t, "health", "/readyz"); status != 200 {
		t.Errorf("/readyz: %d %q", status, body)
	}
	_, metrics := p.get(t, "metrics", "/metrics")
	for _, line := range []string{
		"pipeguard_canary_failures_total 0", // none was sent before there was a policy
		`pipeguard_admission_decisions_total{code="PG001",effect="deny"} 1`,
		`pipeguard_admission_decisions_total{code="PG003",effect="deny"} 1`,
		`pipeguard_admission_decisions_total{code="none",effect="allow"} 1`,
		`pipeguard_admission_decisions_total{code="none",effect="none"} 1`,
		`pipeguard_admission_http_responses_total{code="400"} 1`,
		`pipeguard_policy_activations_total{result="activated"} 1`,
		`pipeguard_policy_info{revision="` + denied.AuditAnnotations["revision"] + `"} 1`,
		`pipeguard_canary_denied 1`,
		`pipeguard_audit_write_failures_total 0`,
	} {
		if !strings.Contains(metrics, "\n"+line+"\n") {
			t.Errorf("/metrics has no line %s", line)
		}
	}
	if !strings.Contains(metrics, "pipeguard_canary_last_denied_timestamp_seconds 1") {
		t.Error("/metrics does not say when the canaries were refused")
	}

	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	var codes []string
	for e, err := range audit.Read(p.stdout) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == audit.TypeAdmission {
			codes = append(codes, string(e.Decision.Effect)+" "+e.Decision.Rule)
			if e.Decision.Rule == "PG001" && e.ID != denied.AuditAnnotations["decision-id"] {
				t.Errorf("the record's id %q is not the annotation's %q", e.ID, denied.AuditAnnotations["decision-id"])
			}
		}
	}
	if got, want := strings.Join(codes, ", "), "deny PG001, allow , deny PG003"; got != want {
		t.Errorf("records: %s; want %s", got, want)
	}
	if _, err := tls.Dial("tcp", p.address, nil); err == nil { //nolint:noctx // expected to fail at once
		t.Error("it still takes connections after its stop")
	}
}

// copyPolicy writes the default policy to a directory.
func copyPolicy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policies")
	if err := os.CopyFS(dir, builtin.FS()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestANewPolicyDecidesAndAnUnfitOneDoesNot(t *testing.T) {
	dir := copyPolicy(t)
	p := start(t, "--policy-dir="+dir)
	if a := p.review(t, "team-a", `\\.\pipe\acme_agent`); !a.Allowed {
		t.Fatalf("refused before there is a rule: %s", a.Result.Message)
	}
	write(t, filepath.Join(dir, "acme.rego"), `package pipeguard.admission

# METADATA
# title: Nobody gets the agent's pipe
# custom: {code: ACME-1, remedy: Ask the platform team.}
findings contains {"code": "ACME-1", "effect": "deny", "field": mount.field} if {
	some mount in input.mounts
	mount.pipe == "acme_agent"
}
`)
	var denied *admissionv1.AdmissionResponse
	eventually(t, "the new rule decides", func() bool {
		denied = p.review(t, "team-a", `\\.\pipe\acme_agent`)
		return denied.AuditAnnotations["codes"] == "ACME-1"
	})
	if !strings.Contains(denied.Result.Message, "ACME-1: ") || !strings.Contains(denied.Result.Message, "Fix: Ask the platform team.") {
		t.Errorf("message: %s", denied.Result.Message)
	}

	// A policy that lets the canary through compiles, and is not used.
	write(t, filepath.Join(dir, "decision.rego"), "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n")
	eventually(t, "the unfit policy is refused", func() bool {
		_, metrics := p.get(t, "metrics", "/metrics")
		return strings.Contains(metrics, "\npipeguard_policy_activations_total{result=\"refused\"} 1\n")
	})
	if a := p.review(t, "team-a", pipe); a.Allowed || a.AuditAnnotations["revision"] != denied.AuditAnnotations["revision"] {
		t.Errorf("the policy before it does not decide: %+v", a)
	}
	if status, body := p.get(t, "health", "/readyz"); status != 200 {
		t.Errorf("/readyz: %d %q", status, body)
	}
	if p.logs.FilterMessage("policies not activated").Len() == 0 {
		t.Error("the log does not say that the policy was not activated")
	}
}

func TestParametersAreReadAgainWithThePolicies(t *testing.T) {
	dir := copyPolicy(t)
	params := filepath.Join(t.TempDir(), "parameters.yaml")
	write(t, params, "{}")
	p := start(t, "--policy-dir="+dir, "--params="+params)
	if a := p.review(t, "drivers", pipe); a.Allowed {
		t.Fatal("admitted before its namespace is allowed")
	}
	write(t, params, "allowedNamespaces: {drivers: }\nguardedPipes: [csi-proxy*, docker_engine]\n")
	write(t, filepath.Join(dir, "touch.rego"), "package pipeguard.touch\n")
	eventually(t, "the namespace is allowed", func() bool { return p.review(t, "drivers", pipe).Allowed })
	eventually(t, "the new pipe is guarded", func() bool {
		return p.review(t, "team-a", `\\.\pipe\docker_engine`).AuditAnnotations["codes"] == "PG001"
	})
}

func TestTheProcessDoesNotStartWithWhatItCannotUse(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	write(t, bad, "hostProcess: Maybe\nmore: 1\n")
	for name, args := range map[string][]string{
		"parameters that are missing":         {"--params=" + filepath.Join(dir, "none")},
		"parameters with faults":              {"--params=" + bad},
		"namespaces that are none":            {"--namespaces=" + bad},
		"a policy directory that is missing":  {"--policy-dir=" + filepath.Join(dir, "none")},
		"a policy directory that is a file":   {"--policy-dir=" + bad},
		"a certificate that is missing":       {"--cert-dir=" + dir},
		"client authorities that are none":    {"--client-ca-file=" + bad},
		"an audit log in a file's place":      {"--audit-log=" + filepath.Join(bad, "audit")},
		"an authority in a missing directory": {"--write-ca=" + filepath.Join(dir, "none", "ca.pem")},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, _, err := newTestServer(t, args...); err == nil {
				t.Error("it was started")
			}
		})
	}
}

func TestTheProcessEndsIfItsFirstPoliciesAreUnfit(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "broken.rego"), "package x\n\nfoo := \n")
	s, _, _, err := newTestServer(t, "--policy-dir="+dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := s.run(ctx); err == nil || !strings.Contains(err.Error(), "broken.rego:4:1") {
		t.Errorf("ended with %v, want an error with the place of the fault", err)
	}
}

func TestReadyzSaysWhyTheProcessIsNotReady(t *testing.T) {
	s, _, _, err := newTestServer(t) // nothing is activated, because it does not run
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, e := range s.endpoints {
			_ = e.listener.Close()
		}
		_ = s.records.Close()
	})
	if err := s.readiness.check(t.Context()); err == nil || !strings.Contains(err.Error(), "no policy is active") {
		t.Errorf("check: %v", err)
	}
	w := &answer{header: http.Header{}}
	s.readiness.ServeHTTP(w, nil)
	if w.status != 503 || !strings.Contains(w.body.String(), "no policy is active") {
		t.Errorf("/readyz: %d %q", w.status, w.body.String())
	}
}

type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

func TestGivenCertificatesAreServedAndClientsHaveToShowTheirs(t *testing.T) {
	dir := t.TempDir()
	i, err := newIssuer([]string{"127.0.0.1"}, time.Now, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := i.writeAuthority(ca); err != nil {
		t.Fatal(err)
	}
	given := i.leaf.Load()
	key, err := x509.MarshalPKCS8PrivateKey(given.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: given.Certificate[0]})))
	write(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))

	p := startWith(t, ca, "--cert-dir="+dir)
	if a := p.review(t, "team-a", pipe); a.Allowed {
		t.Error("admitted")
	}
	p = startWith(t, ca, "--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"), "--client-ca-file="+ca)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.client.Do(req); err == nil {
		_ = res.Body.Close()
		t.Errorf("a client without certificate got status %d", res.StatusCode)
	}
}

func TestTLSIsModernAndHTTP2IsOffUnlessAsked(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{{nil, "HTTP/1.1"}, {[]string{"--enable-http2"}, "HTTP/2.0"}} {
		p := start(t, c.args...)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.Proto != c.want || res.TLS.Version != tls.VersionTLS13 || res.StatusCode != 405 {
			t.Errorf("%v: %s, TLS %#x, status %d; want %s", c.args, res.Proto, res.TLS.Version, res.StatusCode, c.want)
		}
		old := p.client.Transport.(*http.Transport).TLSClientConfig.Clone()
		old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		dialer := tls.Dialer{Config: old}
		if conn, err := dialer.DialContext(t.Context(), "tcp", p.address); err == nil {
			_ = conn.Close()
			t.Error("a client of TLS 1.1 was served")
		}
	}
}
