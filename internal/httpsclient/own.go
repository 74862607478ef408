package httpsclient

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
)

// verifier verifies servers as crypto/tls does, except for the names of a certificate that is one of its own.
type verifier struct {
	authorities *x509.CertPool
	own         []*x509.Certificate // those in authorities
	name        string              // of any other server
}

// verify implements tls.Config.VerifyConnection.
func (v verifier) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server shows no certificate")
	}
	shown := state.PeerCertificates[0]
	o := x509.VerifyOptions{Roots: v.authorities, Intermediates: x509.NewCertPool()}
	for _, c := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(c)
	}
	if !slices.ContainsFunc(v.own, shown.Equal) {
		o.DNSName = v.name
	}
	_, err := shown.Verify(o)
	return err
}

// certificatesOf reads every certificate in PEM of a text. A block that holds none is a fault of the file.
func certificatesOf(file string, text []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("CA file: %s: %w", file, err)
		}
		all = append(all, c)
	}
	return all, nil
}
