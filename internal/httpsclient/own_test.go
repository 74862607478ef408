package httpsclient

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

// signed is a certificate of a name that an authority has signed.
func signed(t *testing.T, by harness.Certificate, name string, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, how := range change {
		how(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Leaf, key.Public(), by.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func TestAServerIsKnownByItsOwnCertificateOrByAuthorityAndName(t *testing.T) {
	authority, other := harness.SelfSigned(t, "authority"), harness.SelfSigned(t, "other")
	expired := func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Minute) }
	client := func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }
	pem := func(c tls.Certificate) string { return harness.CertificatePEM(c.Leaf) }
	named, elsewhere := signed(t, authority, "win-1"), signed(t, authority, "win-2")
	stranger := signed(t, other, "win-1")
	for name, test := range map[string]struct {
		shown tls.Certificate
		file  string
		want  string // "" is accepted
	}{
		"the authority's, of the name":            {named, authority.PEM, ""},
		"the authority's, of another name":        {elsewhere, authority.PEM, "win-2"},
		"its own, of another name":                {elsewhere, pem(elsewhere), ""},
		"its own, beside the authority":           {elsewhere, authority.PEM + pem(elsewhere), ""},
		"its own, and no authority has signed it": {harness.SelfSigned(t, "win-2").Certificate, "", ""},
		"another's own":                           {elsewhere, pem(named), "win-2"},
		"of an authority that is not known":       {stranger, authority.PEM, "authority"},
		"its own, but expired":                    {signed(t, authority, "win-1", expired), "", "expired"},
		"its own, but not for servers":            {signed(t, authority, "win-1", client), "", "usage"},
		"of the name and expired":                 {signed(t, authority, "win-1", expired), authority.PEM, "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t, func(c *tls.Config) { c.Certificates = []tls.Certificate{test.shown} }, credentials)
			if test.file == "" {
				test.file = pem(test.shown)
			}
			c, err := New(Options{CAFile: file(t, test.file), ServerName: "win-1", OwnCertificate: true, TokenFile: file(t, "secret")})
			if err != nil {
				t.Fatal(err)
			}
			if test.want != "" {
				fails(t, c, s.URL, test.want)
				return
			}
			for range 2 { // the second time a session may be resumed
				if got, err := get(t, c, s.URL); err != nil || got != "Bearer secret" {
					t.Errorf("%q, %v", got, err)
				}
				c.CloseIdleConnections()
			}
		})
	}
}

func TestACertificateOfItsOwnNeedsAFileAndAName(t *testing.T) {
	ca := harness.SelfSigned(t, "a").PEM
	for name, o := range map[string]Options{
		"no file":            {ServerName: "a", OwnCertificate: true},
		"no name":            {CAFile: file(t, ca), OwnCertificate: true},
		"a file with faults": {CAFile: file(t, ca+"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), ServerName: "a", OwnCertificate: true},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
	}
}

func TestARenewedCertificateIsKnownOnceTheFileHoldsIt(t *testing.T) {
	first, second := harness.SelfSigned(t, "a"), harness.SelfSigned(t, "a")
	s := server(t, func(c *tls.Config) { c.Certificates = []tls.Certificate{second.Certificate} }, credentials)
	o := Options{CAFile: file(t, first.PEM), ServerName: "b", OwnCertificate: true}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	fails(t, c, s.URL, "certificate")
	rewrite(t, o.CAFile, first.PEM+second.PEM)
	if _, err := get(t, c, s.URL); err != nil {
		t.Error(err)
	}
	rewrite(t, o.CAFile, first.PEM)
	c.CloseIdleConnections()
	fails(t, c, s.URL, "certificate")
}
