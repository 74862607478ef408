package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// leafLifetime is how long a certificate that the process makes is good for; after two thirds it makes the next.
	leafLifetime = 24 * time.Hour
	// authorityLifetime outlives any process that is restarted once a year. The key never leaves the memory.
	authorityLifetime = 2 * 365 * 24 * time.Hour
	// backdated allows for clocks of clients that are late.
	backdated = 5 * time.Minute
	// retryIssue is how long the process waits after it could not make a certificate.
	retryIssue = time.Minute
)

// issuer makes certificates for a server that was given none. Its authority can vouch for the server's own
// hosts only, so that a client who trusts it trusts it with nothing else.
type issuer struct {
	names     []string
	addresses []net.IP
	now       func() time.Time
	log       *zap.Logger

	authority *x509.Certificate
	key       *ecdsa.PrivateKey
	leaf      atomic.Pointer[tls.Certificate]
}

func newIssuer(hosts []string, now func() time.Time, log *zap.Logger) (*issuer, error) {
	i := &issuer{now: now, log: log}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			i.addresses = append(i.addresses, ip)
		} else {
			i.names = append(i.names, host)
		}
	}
	if err := i.makeAuthority(); err != nil {
		return nil, fmt.Errorf("make a certificate authority: %w", err)
	}
	if err := i.issue(); err != nil {
		return nil, err
	}
	return i, nil
}

func (i *issuer) makeAuthority() error {
	template, err := i.template("Pipeguard webhook authority", authorityLifetime)
	if err != nil {
		return err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	template.PermittedDNSDomainsCritical = true
	template.PermittedDNSDomains = i.names
	for _, ip := range i.addresses {
		if four := ip.To4(); four != nil {
			ip = four
		}
		template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	// Without a range of a sort, all of that sort would be permitted.
	if len(i.addresses) == 0 {
		template.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
	if len(i.names) == 0 {
		template.PermittedDNSDomains = []string{"invalid"}
	}
	if i.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, i.key.Public(), i.key)
	if err != nil {
		return err
	}
	i.authority, err = x509.ParseCertificate(der)
	return err
}

// issue makes the next certificate.
func (i *issuer) issue() error {
	template, err := i.template("Pipeguard webhook", leafLifetime)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	template.DNSNames, template.IPAddresses = i.names, i.addresses
	template.KeyUsage, template.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.authority, key.Public(), i.key)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	i.leaf.Store(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf})
	return nil
}

func (i *issuer) template(name string, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    i.now().Add(-backdated),
		NotAfter:     i.now().Add(lifetime),
	}, nil
}

// GetCertificate implements certificates.
func (i *issuer) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return i.leaf.Load(), nil
}

// Start replaces the certificate after two thirds of its life.
func (i *issuer) Start(ctx context.Context) error {
	wait := leafLifetime * 2 / 3
	for periodic.Sleep(ctx, wait) {
		wait = leafLifetime * 2 / 3
		if err := i.issue(); err != nil {
			i.log.Error("certificate not renewed", zap.Error(err))
			wait = retryIssue
		}
	}
	return nil
}

// writeAuthority writes the authority's certificate for clients. They never see half of it.
func (i *issuer) writeAuthority(file string) error {
	if err := atomicfile.Replace(file, 0o644, func(w io.Writer) error {
		return pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: i.authority.Raw})
	}); err != nil {
		return fmt.Errorf("write the certificate authority: %w", err)
	}
	return nil
}
