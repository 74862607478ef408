//go:build e2e

package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of the cluster and writes them, with their keys, into a directory.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// file is the path of what the authority has written.
func (a *authority) file(name string) string { return filepath.Join(a.dir, name) }

// newAuthority writes ca.crt, and sa.key and sa.pub for the tokens of service accounts.
func newAuthority(dir string) (*authority, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	a := &authority{dir: dir}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "a cluster for tests"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := a.issue("ca", template); err != nil {
		return nil, err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	public, err := x509.MarshalPKIXPublicKey(tokens.Public())
	if err != nil {
		return nil, err
	}
	if err := a.writeKey("sa.key", tokens); err != nil {
		return nil, err
	}
	return a, a.write("sa.pub", "PUBLIC KEY", public)
}

// server writes a certificate for names and addresses, which also serves as a client's.
func (a *authority) server(file, name string, organizations []string, dns []string, addresses ...string) error {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name, Organization: organizations}, DNSNames: dns,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, address := range addresses {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(address))
	}
	return a.issue(file, template)
}

// client writes a certificate for a user in groups.
func (a *authority) client(file, user string, groups ...string) error {
	return a.server(file, user, groups, nil)
}

// issue completes a template, signs it (by itself if there is no authority yet) and writes file.crt and file.key.
func (a *authority) issue(file string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(24*time.Hour)
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return err
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return fmt.Errorf("sign the certificate %s: %w", file, err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			return err
		}
		a.key = key
	}
	if err := a.writeKey(file+".key", key); err != nil {
		return err
	}
	return a.write(file+".crt", "CERTIFICATE", der)
}

func (a *authority) writeKey(file string, key crypto.Signer) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return a.write(file, "PRIVATE KEY", der)
}

func (a *authority) write(file, block string, der []byte) error {
	return os.WriteFile(a.file(file), pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), 0o600)
}

// kubeconfig writes file.conf with a new certificate for a user in groups.
func (a *authority) kubeconfig(file, user string, groups ...string) error {
	if err := a.client(file, user, groups...); err != nil {
		return err
	}
	return os.WriteFile(a.file(file+".conf"), fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: cluster
  cluster: {server: %q, certificate-authority: %q}
users:
- name: user
  user: {client-certificate: %q, client-key: %q}
contexts:
- name: context
  context: {cluster: cluster, user: user}
current-context: context
`, apiURL, a.file("ca.crt"), a.file(file+".crt"), a.file(file+".key")), 0o600)
}
