package httpsclient

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/filetrust"
)

const (
	maxFile  = 1 << 20  // bytes of certificates or a key
	maxToken = 16 << 10 // bytes; tokens of service accounts have one or two thousand
)

// CertPool reads the certificates of a file, in PEM. Without a file it is nil, which stands for the system's.
func CertPool(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := readAuthorities(file, false)
	if err != nil {
		return nil, err
	}
	return poolOf(file, text)
}

func poolOf(file string, text []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("CA file: %s holds no certificate in PEM", file)
	}
	return pool, nil
}

func readAuthorities(file string, decides bool) ([]byte, error) {
	read := filetrust.ReadSmall
	if decides {
		read = filetrust.Read
	}
	text, err := read(file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("CA file: %w", err)
	}
	return text, nil
}

// ReadToken returns the bearer token that a file holds. Its errors do not tell what else it holds.
func ReadToken(file string) (string, error) {
	text, err := filetrust.ReadSmall(file, maxToken)
	if err != nil {
		return "", fmt.Errorf("token file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("token file: %s is empty", file)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", fmt.Errorf("token file: %s holds more than one token", file)
	}
	return token, nil
}

// certificate reads the client certificate and its key.
func (t *transport) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	certificate, err := filetrust.ReadSmall(t.o.CertFile, maxFile)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	key, err := filetrust.ReadSmall(t.o.KeyFile, maxFile)
	if err != nil {
		return nil, fmt.Errorf("key of the client certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s: %w", t.o.CertFile, err)
	}
	return &pair, nil
}
