package main

import (
	"crypto/tls"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
)

func TestGivenCertificatesAreServedAndClientsHaveToShowTheirs(t *testing.T) {
	dir := t.TempDir()
	given, ca := harness.SelfSigned(t, "127.0.0.1"), filepath.Join(dir, "ca.pem")
	for file, text := range map[string]string{ca: given.PEM, filepath.Join(dir, "tls.crt"): given.PEM, filepath.Join(dir, "tls.key"): given.KeyPEM} {
		harness.Replace(t, file, text)
	}
	policies := copyPolicy(t)
	p := startWith(t, ca, "--cert-dir="+dir, "--policy-dir="+policies)
	if a := p.review(t, "team-a", pipe); a.Allowed {
		t.Error("admitted")
	}
	p = startWith(t, ca, "--policy-dir="+policies, configFile(t, "certificate: {certFile: "+filepath.Join(dir, "tls.crt")+", keyFile: "+filepath.Join(dir, "tls.key")+", clientCAFile: "+ca+"}"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := p.client.Do(req); err == nil {
		_ = res.Body.Close()
		t.Errorf("a client without certificate got status %d", res.StatusCode)
	}
}

func TestTLSIsModernAndHTTP2IsNotOffered(t *testing.T) {
	p := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.Proto != "HTTP/1.1" || res.TLS.Version != tls.VersionTLS13 || res.StatusCode != 405 {
		t.Errorf("%s, TLS %#x, status %d", res.Proto, res.TLS.Version, res.StatusCode)
	}
	old := p.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	dialer := tls.Dialer{Config: old}
	if conn, err := dialer.DialContext(t.Context(), "tcp", p.webhook.address()); err == nil {
		_ = conn.Close()
		t.Error("a client of TLS 1.1 was served")
	}
}
