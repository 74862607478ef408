package main

import (
	"context"
	"crypto/x509"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/test/harness"
)

func TestTheCertificateIsReplacedBeforeItExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i, err := newIssuer([]string{"localhost", "127.0.0.1"}, time.Now, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- i.Start(ctx) }()
		roots := x509.NewCertPool()
		roots.AddCert(i.authority.Certificate())
		serials := map[string]bool{}
		for range 10 {
			cert, err := i.GetCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			serials[cert.Leaf.SerialNumber.String()] = true
			if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1", CurrentTime: time.Now()}); err != nil {
				t.Errorf("at %s: %v", time.Now(), err)
			}
			if left := time.Until(cert.Leaf.NotAfter); left > leafLifetime || left < leafLifetime/3 {
				t.Errorf("%s of the certificate's life are left", left)
			}
			time.Sleep(7 * time.Hour) // of the test's own clock
			synctest.Wait()
		}
		if len(serials) < 4 {
			t.Errorf("%d certificates in 70 hours, want at least 4", len(serials))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestTheAuthorityVouchesForItsOwnHostsOnly(t *testing.T) {
	for name, c := range map[string]struct{ hosts, good, bad []string }{
		"a name and an address": {[]string{"localhost", "127.0.0.1"}, []string{"localhost", "127.0.0.1"}, []string{"example.com", "127.0.0.2", "::1"}},
		"names only":            {[]string{"webhook.svc"}, []string{"webhook.svc"}, []string{"127.0.0.1", "example.com"}},
		"addresses only":        {[]string{"::1"}, []string{"::1"}, []string{"localhost", "127.0.0.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := newIssuer(c.hosts, time.Now, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			verify := func(cert *x509.Certificate, host string) error {
				roots := x509.NewCertPool()
				roots.AddCert(i.authority.Certificate())
				_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
				return err
			}
			for _, host := range c.good {
				if err := verify(i.leaf.Load().Leaf, host); err != nil {
					t.Errorf("%s: %v", host, err)
				}
			}
			for _, host := range c.bad {
				// What is signed for another host does not verify, and is not handed out.
				if _, err := i.authority.Issue([]string{host}, time.Now(), leafLifetime); err == nil {
					t.Errorf("%s has a certificate", host)
				}
			}
		})
	}
}

func TestParseNamespaces(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want namespaceLabels
	}{
		"a mapping":      {"a: {x: z}\nb:\n", namespaceLabels{"a": {"x": "z"}, "b": nil}},
		"objects":        {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {x: z}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n", namespaceLabels{"a": {"x": "z"}, "b": nil}},
		"a list":         {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: a, labels: {x: z}}}\n", namespaceLabels{"a": {"x": "z"}}},
		"an empty file":  {"", namespaceLabels{}},
		"only a comment": {"# none\n", namespaceLabels{}},

		"another kind":             {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", nil},
		"another kind in a list":   {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n", nil},
		"a Namespace of no name":   {"apiVersion: v1\nkind: Namespace\n", nil},
		"a namespace twice":        {"a: {}\n---\na: {}\n", nil},
		"labels that are numbers":  {"a: {x: 1}\n", nil},
		"labels that are booleans": {"a: {x: y}\n", nil},
		"a list of names":          {"[a, b]\n", nil},
		"text that is not YAML":    {"a: [\n", nil},
		"labels in a comment":      {"a: {}\n# only a:\u2029b: {x: z}\n", nil},
		"an unknown field":         {"apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\nlabels: {x: z}\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseNamespaces([]byte(c.text))
			if (err != nil) != (c.want == nil) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(c.want, got); err == nil && diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParametersOfTheBuiltInPolicyAreReadAgain(t *testing.T) {
	params := filepath.Join(t.TempDir(), "parameters.yaml")
	harness.Replace(t, params, "hostProcess: Warn\n")
	s, _, logs, err := newTestServer(t, "--params="+params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, e := range s.endpoints {
			_ = e.listener.Close()
		}
		_ = s.records.Close()
	})
	activated := make(chan string, 10)
	s.policies.poll = time.Millisecond
	s.policies.attempted = func(now policy.Snapshot, err error) {
		s.attempted(now, err)
		if err == nil {
			activated <- now.Revision()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.policies.run(ctx) }()
	first := <-activated
	harness.Replace(t, params, "hostProcess: Maybe\n") // refused: the parameters before it stay
	eventually(t, "the fault is reported", func() bool { return logs.FilterMessage("policies not activated").Len() == 1 })
	if now, _ := s.policies.engine.Active(); now.Revision() != first {
		t.Error("parameters with a fault were activated")
	}
	harness.Replace(t, params, "hostProcess: Deny\n")
	if second := <-activated; second == first {
		t.Error("the revision is the same with other parameters")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
