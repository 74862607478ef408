package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/test/harness"
)

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
	harness.Replace(t, filepath.Join(dir, "tls.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: given.Certificate[0]})))
	harness.Replace(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))

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
