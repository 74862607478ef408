package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/atmost"
	"github.com/pipeguard/pipeguard/internal/atomicfile"
	"github.com/pipeguard/pipeguard/internal/certs"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// leafLifetime is how long a certificate that the process makes is good for; after two thirds it makes the next.
	leafLifetime = 24 * time.Hour
	// authorityLifetime outlives any process that is restarted once a year. The key never leaves the memory.
	authorityLifetime = 2 * 365 * 24 * time.Hour
	// retryIssue is how long the process waits after it could not make a certificate.
	retryIssue = time.Minute
)

// issuer makes certificates for a server that was given none.
type issuer struct {
	hosts []string
	now   func() time.Time
	log   *zap.Logger

	authority *certs.Authority
	leaf      atomic.Pointer[tls.Certificate]
}

func newIssuer(hosts []string, now func() time.Time, log *zap.Logger) (*issuer, error) {
	authority, err := certs.NewAuthority(hosts, now(), authorityLifetime)
	if err != nil {
		return nil, err
	}
	i := &issuer{hosts: hosts, now: now, log: log, authority: authority}
	return i, i.issue()
}

// issue makes the next certificate.
func (i *issuer) issue() error {
	leaf, err := i.authority.Issue(i.hosts, i.now(), leafLifetime)
	if err == nil {
		i.leaf.Store(leaf)
	}
	return err
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

// writeAuthority writes the authority's certificate for clients. They never see half of it. Any other file, named by mistake, is not replaced.
func (i *issuer) writeAuthority(file string) error {
	const begin = "-----BEGIN "
	old, err := atmost.ReadFile(file, 64<<10)
	isCertificate := bytes.HasPrefix(old, []byte(begin+"CERTIFICATE-----")) && bytes.Count(old, []byte(begin)) == 1
	if !errors.Is(err, fs.ErrNotExist) && (err != nil || len(old) > 0 && !isCertificate) {
		return fmt.Errorf("write the certificate authority: %s is there and is not a single certificate: it is not replaced", file)
	}
	if err := atomicfile.Replace(file, 0o644, func(w io.Writer) error {
		return pem.Encode(w, &pem.Block{Type: "CERTIFICATE", Bytes: i.authority.Certificate().Raw})
	}); err != nil {
		return fmt.Errorf("write the certificate authority: %w", err)
	}
	return nil
}
