package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
	"github.com/pipeguard/pipeguard/test/harness"
)

func TestTheProcessRefusesAdmitsRecordsAndStops(t *testing.T) {
	namespaces := filepath.Join(t.TempDir(), "namespaces.yaml")
	harness.Replace(t, namespaces, "team-a: {team: a}\n")
	params := filepath.Join(t.TempDir(), "parameters.yaml")
	harness.Replace(t, params, "allowedNamespaces: {drivers: {serviceAccounts: [driver]}}\n")
	p := startBuiltIn(t, "--namespaces="+namespaces, "--params="+params)

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
		`pipeguard_policy_tests 0`, // those of the built-in policies ran when it was made
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
	for e, err := range recorded.Read(p.stdout) {
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
	if _, err := tls.Dial("tcp", p.webhook.address(), nil); err == nil { //nolint:noctx // expected to fail at once
		t.Error("it still takes connections after its stop")
	}
}

func TestTheProcessDoesNotStartWithWhatItCannotUse(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	harness.Replace(t, bad, "hostProcess: Maybe\nmore: 1\n")
	const certificateAndKey = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"
	pair := filepath.Join(dir, "pair.pem")
	harness.Replace(t, pair, certificateAndKey)
	for name, args := range map[string][]string{
		"parameters that are missing":         {"--params=" + filepath.Join(dir, "none")},
		"parameters with faults":              {"--params=" + bad},
		"namespaces that are none":            {"--namespaces=" + bad},
		"a policy directory that is missing":  {"--policy-dir=" + filepath.Join(dir, "none")},
		"a policy directory that is a file":   {"--policy-dir=" + bad},
		"a certificate that is missing":       {"--cert-dir=" + dir},
		"client authorities that are none":    {configFile(t, "certificate: {clientCAFile: "+bad+"}")},
		"an audit log in a file's place":      {"--audit-log=" + filepath.Join(bad, "audit")},
		"an authority in a missing directory": {"--write-ca=" + filepath.Join(dir, "none", "ca.pem")},
		"an authority in a file's place":      {"--write-ca=" + bad},
		"an authority in a key's place":       {"--write-ca=" + pair},
		"an authority in a directory's place": {"--write-ca=" + dir},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, _, err := newTestServer(t, args...); err == nil {
				t.Error("it was started")
			}
		})
	}
	if text, err := os.ReadFile(pair); err != nil || string(text) != certificateAndKey {
		t.Errorf("the file of a key holds %q (%v)", text, err)
	}
}

func TestTheProcessEndsIfItsFirstPoliciesAreUnfit(t *testing.T) {
	dir := t.TempDir()
	harness.Replace(t, filepath.Join(dir, "broken.rego"), "package x\n\nfoo := \n")
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
