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
	names, ranges := constraints(hosts)
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Pipeguard webhook authority"}, NotBefore: now.Add(-backdated), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: names, PermittedIPRanges: ranges,
	}
	if len(ranges) == 0 { // every address would be permitted
		t.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	made, err := certify(t, nil)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	return made, nil
}

// Certificate is the one that clients trust.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Issue makes a certificate for hosts that does not outlive its authority.
func (a *Authority) Issue(hosts []string, now time.Time, lifetime time.Duration) (*tls.Certificate, error) {
	until := now.Add(lifetime)
	if until.After(a.certificate.NotAfter) {
		until = a.certificate.NotAfter
	}
	names, addresses := split(hosts)
	made, err := certify(&x509.Certificate{
		Subject: pkix.Name{CommonName: "Pipeguard webhook"}, NotBefore: now.Add(-backdated), NotAfter: until,
		DNSNames: names, IPAddresses: addresses, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	leaf := &tls.Certificate{Certificate: [][]byte{made.certificate.Raw}, PrivateKey: made.key, Leaf: made.certificate}
	// What would not verify is never handed out: making it again and again would not help either.
	if err := verify(leaf, pool(a.certificate), hosts, now); err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return leaf, nil
}

// certify makes a key and a certificate for it, which the signer signs; without a signer it is signed by its own key.
func certify(t *x509.Certificate, signer *Authority) (made *Authority, err error) {
	if t.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if signer == nil {
		signer = &Authority{t, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, signer.certificate, key.Public(), signer.key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &Authority{certificate, key}, err
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

// constraints are the names and the ranges of addresses for which an authority of hosts may sign.
func constraints(hosts []string) (names []string, ranges []*net.IPNet) {
	names, addresses := split(hosts)
	if len(names) == 0 {
		names = []string{"invalid"} // without one, every name would be permitted
	}
	for _, ip := range addresses {
		ranges = append(ranges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	return names, ranges
}

// fits says what keeps a certificate from being an authority for hosts as NewAuthority makes them.
func fits(c *x509.Certificate, hosts []string) error {
	switch {
	case !c.IsCA || !c.BasicConstraintsValid || c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("the certificate is not an authority's")
	case c.CheckSignatureFrom(c) != nil:
		return errors.New("the certificate is not signed by itself")
	}
	names, ranges := constraints(hosts)
	if !slices.Equal(sortedTexts(c.PermittedDNSDomains, c.PermittedIPRanges), sortedTexts(names, ranges)) {
		return fmt.Errorf("the certificate is for %q and addresses in %v, not for %q", c.PermittedDNSDomains, c.PermittedIPRanges, hosts)
	}
	return nil
}

func sortedTexts(names []string, ranges []*net.IPNet) []string {
	texts := slices.Clone(names)
	for _, r := range ranges {
		texts = append(texts, r.String())
	}
	slices.Sort(texts)
	return texts
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
