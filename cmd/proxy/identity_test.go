package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
	"github.com/pipeguard/pipeguard/test/harness"
)

// kubeletDir is a directory with the authority of a cluster, and one with a kubelet's certificates and keys.
func kubeletDir(t *testing.T) (f identityFlags, own harness.Certificate, pki string) {
	t.Helper()
	dir := t.TempDir()
	pki = filepath.Join(dir, "pki")
	cluster, own := harness.SelfSigned(t, "cluster"), harness.SelfSigned(t, "win-1")
	if err := errors.Join(os.Mkdir(pki, 0o700), os.WriteFile(filepath.Join(dir, "ca.crt"), []byte(cluster.PEM), 0o600)); err != nil {
		t.Fatal(err)
	}
	f = identityFlags{from: dir, certificates: []string{filepath.Join(pki, "kubelet-server-current.pem"), filepath.Join(pki, "kubelet.crt")}}
	return f, own, pki
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheKubeletIsKnownByTheClusterAndByItsOwnCertificateOfNow(t *testing.T) {
	f, own, pki := kubeletDir(t)
	authorities := func(want ...string) {
		t.Helper()
		text, err := f.readAuthorities(filepath.Join(f.from, "ca.crt"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), "BEGIN CERTIFICATE"); n != 1+len(want) || bytes.Contains(text, []byte("PRIVATE")) {
			t.Errorf("%d certificates in\n%s", n, text)
		}
		for _, c := range want {
			if !strings.Contains(string(text), c) {
				t.Errorf("a certificate is missing in\n%s", text)
			}
		}
	}
	authorities() // a kubelet that has not begun yet
	issuer := harness.SelfSigned(t, "issuer")
	put(t, filepath.Join(pki, "kubelet.crt"), own.PEM+issuer.PEM)
	authorities(own.PEM) // its issuer could sign for others

	renewed := harness.SelfSigned(t, "win-1")
	put(t, filepath.Join(pki, "kubelet-server-2.pem"), renewed.PEM+renewed.KeyPEM)
	err := os.Symlink(filepath.Join(pki, "kubelet-server-2.pem"), f.certificates[0])
	if err == nil { // Wine says that it has made one, and has not
		_, err = os.Readlink(f.certificates[0])
	}
	if err != nil && runtime.GOOS == "windows" {
		t.Skip("links are made on Linux, and on Windows by those who may:", err)
	} else if err != nil {
		t.Fatal(err)
	}
	authorities(renewed.PEM, own.PEM)
}

func TestACertificateThatCannotBeTakenIsLeftOutAndTold(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, f *identityFlags, own harness.Certificate, pki string){
		"no certificate": func(t *testing.T, _ *identityFlags, own harness.Certificate, pki string) {
			put(t, filepath.Join(pki, "kubelet.crt"), own.KeyPEM)
		},
		"garbage": func(t *testing.T, _ *identityFlags, _ harness.Certificate, pki string) {
			put(t, filepath.Join(pki, "kubelet.crt"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
		},
		"too much": func(t *testing.T, _ *identityFlags, own harness.Certificate, pki string) {
			put(t, filepath.Join(pki, "kubelet.crt"), own.PEM+strings.Repeat(" ", maxCertificates))
		},
		"a directory": func(t *testing.T, _ *identityFlags, _ harness.Certificate, pki string) {
			if err := os.Mkdir(filepath.Join(pki, "kubelet.crt"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"others can change it": func(t *testing.T, _ *identityFlags, own harness.Certificate, pki string) {
			if runtime.GOOS == "windows" {
				t.Skip("it has access lists instead of modes: internal/filetrust has their tests")
			}
			put(t, filepath.Join(pki, "kubelet.crt"), own.PEM)
			if err := os.Chmod(filepath.Join(pki, "kubelet.crt"), 0o666); err != nil {
				t.Fatal(err)
			}
		},
		"others can replace it": func(t *testing.T, _ *identityFlags, own harness.Certificate, pki string) {
			if runtime.GOOS == "windows" {
				t.Skip("as above")
			}
			put(t, filepath.Join(pki, "kubelet.crt"), own.PEM)
			if err := os.Chmod(pki, 0o777); err != nil { //nolint:gosec // that is the point
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, own, pki := kubeletDir(t)
			spoil(t, &f, own, pki)
			text, err := f.readAuthorities(filepath.Join(f.from, "ca.crt"))
			if incomplete := (*install.Incomplete)(nil); !errors.As(err, &incomplete) || strings.Count(string(text), "BEGIN CERTIFICATE") != 1 || strings.Contains(err.Error(), own.KeyPEM) {
				t.Errorf("%v, with\n%s", err, text)
			}
		})
	}
}

// A link of the kubelet's names a file beside it. One that leads elsewhere has the file of that name taken, if there is one.
func TestALinkLeadsToNoOtherDirectory(t *testing.T) {
	f, own, pki := kubeletDir(t)
	elsewhere := filepath.Join(t.TempDir(), "theirs.pem")
	put(t, elsewhere, own.PEM)
	if err := os.Symlink(elsewhere, filepath.Join(pki, "kubelet.crt")); err != nil {
		t.Skip("NOT TESTED: a link cannot be made here:", err)
	}
	if text, err := f.readAuthorities(filepath.Join(f.from, "ca.crt")); err != nil || strings.Contains(string(text), own.PEM) {
		t.Errorf("%v, with\n%s", err, text)
	}
}

func TestWithoutAuthoritiesOrTokenNothingIsPutInPlace(t *testing.T) {
	f, own, pki := kubeletDir(t)
	put(t, filepath.Join(pki, "kubelet.crt"), own.PEM)
	for text, want := range map[string]string{"garbage": "no certificate", "": "empty"} {
		put(t, filepath.Join(f.from, "ca.crt"), text)
		if got, err := f.readAuthorities(filepath.Join(f.from, "ca.crt")); got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{"": "empty", "a\nb": "more than one", " secret.one\n": ""} {
		put(t, filepath.Join(f.from, "token"), text)
		got, err := readKubeletToken(filepath.Join(f.from, "token"))
		if want == "" && (err != nil || string(got) != "secret.one") || want != "" && (got != nil || err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if err := (&identityFlags{certificates: f.certificates}).check(); err == nil {
		t.Error("certificates of nothing are accepted")
	}
	if c := (&identityFlags{}).copies(); c != nil {
		t.Errorf("without the flag: %+v", c)
	}
}
