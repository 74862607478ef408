package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// Keys of the Secret.
const (
	keyAuthority    = "ca.crt"
	keyAuthorityKey = "ca.key"
	keyLeaf         = "tls.crt"
	keyLeafKey      = "tls.key"
	keyNext         = "next-ca.crt"
	keyNextKey      = "next-ca.key"
	keyPrevious     = "previous-ca.crt"
)

const (
	// maxText bounds each entry in bytes; a Secret may hold 1 MiB.
	maxText = 64 << 10
	// maxCertificates bounds what is trusted at one time. A hand-over needs two; after a loss there may be a few more.
	maxCertificates = 16
)

var errAbsent = errors.New("absent")

// parse reads the Secret. Whatever does not hold is left out of the state and named in faults, unless it is merely
// absent from a Secret without any content. The leaf is not yet compared with the authorities.
func parse(data map[string][]byte, hosts []string, now time.Time) (s state, faults []error) {
	fault := func(key string, err error) {
		if err != nil && !errors.Is(err, errAbsent) {
			faults = append(faults, fmt.Errorf("%s: %w", key, err))
		}
	}
	var err error
	s.current, err = parseAuthority(data[keyAuthority], data[keyAuthorityKey], hosts, now)
	fault(keyAuthority, err)
	s.next, err = parseAuthority(data[keyNext], data[keyNextKey], hosts, now)
	fault(keyNext, err)
	if s.next != nil && s.current != nil && s.next.certificate.Equal(s.current.certificate) {
		s.next = nil
	}
	previous, err := decodeCertificates(data[keyPrevious])
	fault(keyPrevious, err)
	for _, c := range previous {
		if isValid(c, now) {
			s.previous = append(s.previous, c)
		}
	}
	s.previous = sorted(s.previous)
	s.leaf, err = parseLeaf(data[keyLeaf], data[keyLeafKey])
	fault(keyLeaf, err)
	return s, faults
}

// parseAuthority returns an authority that is fit to sign.
func parseAuthority(certificate, key []byte, hosts []string, now time.Time) (*Authority, error) {
	c, k, err := parsePair(certificate, key)
	if err != nil {
		return nil, err
	}
	if !isValid(c, now) {
		return nil, fmt.Errorf("valid from %s to %s only", c.NotBefore.Format(time.RFC3339), c.NotAfter.Format(time.RFC3339))
	}
	if err := fits(c, hosts); err != nil {
		return nil, err
	}
	return &Authority{c, k}, nil
}

// parseLeaf returns a certificate that can be served, as far as it goes by itself.
func parseLeaf(certificate, key []byte) (*tls.Certificate, error) {
	c, k, err := parsePair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{c.Raw}, PrivateKey: k, Leaf: c}, nil
}

// parsePair returns a certificate and the key that is its own. Without either the error is errAbsent; to lack one of the two is a fault.
func parsePair(certificate, key []byte) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if len(certificate) == 0 && len(key) == 0 {
		return nil, nil, errAbsent
	}
	all, err := decodeCertificates(certificate)
	if err != nil {
		return nil, nil, err
	}
	if len(all) != 1 {
		return nil, nil, fmt.Errorf("%d certificates, want one", len(all))
	}
	k, err := decodeKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("its key: %w", err)
	}
	if !k.PublicKey.Equal(all[0].PublicKey) {
		return nil, nil, errors.New("the key is not that of the certificate")
	}
	return all[0], k, nil
}

// encode is the Secret's content for a state. Every key is there; those that are nil are to be absent. The leaf's are
// empty at most: a Secret of type kubernetes.io/tls must have them.
func (s state) encode() (map[string][]byte, error) {
	data := map[string][]byte{keyAuthority: nil, keyAuthorityKey: nil, keyNext: nil, keyNextKey: nil, keyLeaf: {}, keyLeafKey: {}}
	put := func(certificateKey, keyKey string, c *x509.Certificate, key *ecdsa.PrivateKey) error {
		data[certificateKey] = encodeCertificates([]*x509.Certificate{c})
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return fmt.Errorf("%s: %w", keyKey, err)
		}
		data[keyKey] = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		return nil
	}
	var err error
	if s.current != nil {
		err = put(keyAuthority, keyAuthorityKey, s.current.certificate, s.current.key)
	}
	if s.next != nil {
		err = errors.Join(err, put(keyNext, keyNextKey, s.next.certificate, s.next.key))
	}
	if s.leaf != nil {
		key, _ := s.leaf.PrivateKey.(*ecdsa.PrivateKey) // parseLeaf and issue make no other
		err = errors.Join(err, put(keyLeaf, keyLeafKey, s.leaf.Leaf, key))
	}
	data[keyPrevious] = encodeCertificates(s.previous)
	return data, err
}

func encodeCertificates(certificates []*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}

// decodeCertificates reads certificates in PEM. A block of another sort is refused.
func decodeCertificates(text []byte) ([]*x509.Certificate, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("longer than %d bytes", maxText)
	}
	var out []*x509.Certificate
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("something that is not a certificate in PEM")
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		if out = append(out, c); len(out) > maxCertificates {
			return nil, fmt.Errorf("more than %d certificates", maxCertificates)
		}
		text = rest
	}
	return out, nil
}

// decodeKey reads a key as encode writes it.
func decodeKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, rest := pem.Decode(text)
	if len(text) > maxText || block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("not one private key in PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("not a key on P-256")
	}
	return key, nil
}
