package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// backdated allows for clocks of API servers that are behind the leader's.
const backdated = time.Hour

// Authority signs the certificates that are served.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes an authority that is constrained to hosts, names or addresses, so that clients trust it with nothing else.
func NewAuthority(hosts []string, now time.Time, lifetime time.Duration) (*Authority, error) {
	t, err := template("Pipeguard webhook authority", now, now.Add(lifetime))
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign
	t.PermittedDNSDomainsCritical = true
	names, addresses := split(hosts)
	t.PermittedDNSDomains = names
	for _, ip := range addresses {
		t.PermittedIPRanges = append(t.PermittedIPRanges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	// Without a range or a name, all of that kind would be permitted.
	if len(addresses) == 0 {
		t.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	if len(names) == 0 {
		t.PermittedDNSDomains = []string{"invalid"}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	certificate, err := sign(t, t, key, key)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	return &Authority{certificate, key}, nil
}

// Certificate is the one that clients trust.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Issue makes a certificate for hosts that does not outlive its authority.
func (a *Authority) Issue(hosts []string, now time.Time, lifetime time.Duration) (*tls.Certificate, error) {
	until := now.Add(lifetime)
	if until.After(a.certificate.NotAfter) {
		until = a.certificate.NotAfter
	}
	t, err := template("Pipeguard webhook", now, until)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	t.DNSNames, t.IPAddresses = split(hosts)
	t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	certificate, err := sign(t, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	leaf := &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key, Leaf: certificate}
	// What would not verify is never handed out: making it again and again would not help either.
	if err := verify(leaf, pool(a.certificate), hosts, now); err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return leaf, nil
}

// split tells addresses from names.
func split(hosts []string) (names []string, addresses []net.IP) {
	for _, host := range hosts {
		ip := net.ParseIP(host)
		if four := ip.To4(); four != nil {
			ip = four
		}
		if ip != nil {
			addresses = append(addresses, ip)
		} else {
			names = append(names, host)
		}
	}
	return names, addresses
}

// fits says what keeps a certificate from being an authority for hosts as NewAuthority makes them.
func fits(c *x509.Certificate, hosts []string) error {
	switch {
	case !c.IsCA || !c.BasicConstraintsValid || c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("the certificate is not an authority's")
	case c.CheckSignatureFrom(c) != nil:
		return errors.New("the certificate is not signed by itself")
	}
	if !slices.Equal(slices.Sorted(slices.Values(c.PermittedDNSDomains)), slices.Sorted(slices.Values(hosts))) {
		return fmt.Errorf("the certificate is for %q, not for %q", c.PermittedDNSDomains, hosts)
	}
	return nil
}

// verify says why an API server that trusts roots would not accept a certificate for one of hosts.
func verify(leaf *tls.Certificate, roots *x509.CertPool, hosts []string, now time.Time) error {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, der := range leaf.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil { // what cannot be read helps no client either
			options.Intermediates.AddCert(c)
		}
	}
	if _, err := leaf.Leaf.Verify(options); err != nil { // with the constraints of authorities for all its names
		return err
	}
	for _, host := range hosts {
		if err := leaf.Leaf.VerifyHostname(host); err != nil {
			return err
		}
	}
	return nil
}

// pool is a pool of trusted certificates.
func pool(certificates ...*x509.Certificate) *x509.CertPool {
	p := x509.NewCertPool()
	for _, c := range certificates {
		p.AddCert(c)
	}
	return p
}

// isValid reports whether a certificate is neither expired nor of the future.
func isValid(c *x509.Certificate, now time.Time) bool {
	return !now.Before(c.NotBefore) && now.Before(c.NotAfter)
}

func template(name string, now, until time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-backdated), NotAfter: until}, nil
}

func sign(t, parent *x509.Certificate, subject, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, parent, subject.Public(), signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}
