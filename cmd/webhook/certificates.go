package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"time"

	"go.uber.org/zap"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// certificates supplies the server's certificate and keeps it fresh.
type certificates interface {
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Start keeps the certificate fresh until ctx is done.
	Start(ctx context.Context) error
}

// newCertificates reads the files that the options name, or makes a certificate.
func newCertificates(o options, log *zap.Logger) (certificates, error) {
	if o.Certificate.isMade() {
		made, err := newIssuer(o.Certificate.Hosts, time.Now, log)
		if err != nil {
			return nil, err
		}
		if o.writeCA != "" {
			if err := made.writeAuthority(o.writeCA); err != nil {
				return nil, err
			}
		}
		return made, nil
	}
	cert, key := o.Certificate.CertFile, o.Certificate.KeyFile
	if dir := o.Certificate.Dir; dir != "" {
		cert, key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	}
	files, err := certwatcher.New(cert, key)
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	return files, nil
}
