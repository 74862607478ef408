package certs

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// retryFollow is how often a Secret that was refused is looked at again: time alone may make it good.
const retryFollow = time.Minute

var errNoCertificate = errors.New("there is no certificate to serve yet")

// SecretCopy is where a Follower sees the Secret.
type SecretCopy interface {
	// LatestSecret returns the Secret, without a version if there is none, and false while that is not known.
	LatestSecret() (Secret, bool)
	// SecretChanges has a value after the Secret has changed. There is one Follower that receives it.
	SecretChanges() <-chan struct{}
}

// FollowerOptions say what a Follower follows.
type FollowerOptions struct {
	Names Names
	Copy  SecretCopy
	// Now tells the time; nil is time.Now.
	Now func() time.Time
	Log *zap.Logger
	// Metrics may be nil.
	Metrics *Metrics
}

// Follower serves the certificate of the Secret, on every replica. While the Secret holds none that is good, it serves
// the last one that was.
type Follower struct {
	options FollowerOptions
	leaf    atomic.Pointer[tls.Certificate]
	fault   string // the newest that was reported, empty after none
}

// NewFollower returns an error that names every fault of the options.
func NewFollower(o FollowerOptions) (*Follower, error) {
	err := o.Names.check(true)
	if o.Copy == nil {
		err = errors.Join(err, errors.New("no copy of the secret"))
	}
	if err != nil {
		return nil, fmt.Errorf("follow certificates: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	return &Follower{options: o}, nil
}

// GetCertificate is for tls.Config. Until there is a certificate, it returns an error.
func (f *Follower) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if leaf := f.leaf.Load(); leaf != nil {
		return leaf, nil
	}
	return nil, errNoCertificate
}

// Check is a controller-runtime healthz.Checker: it fails until there is a certificate.
func (f *Follower) Check(*http.Request) error {
	_, err := f.GetCertificate(nil)
	return err
}

// Start follows until ctx is done.
func (f *Follower) Start(ctx context.Context) error {
	for {
		f.look()
		wait := retryFollow
		if f.fault == "" {
			wait = math.MaxInt64
		}
		if !periodic.Wait(ctx, wait, f.options.Copy.SecretChanges()) {
			return nil
		}
	}
}

// look takes what the Secret holds, if it is good.
func (f *Follower) look() {
	secret, known := f.options.Copy.LatestSecret()
	if !known {
		return
	}
	err := f.take(secret)
	if err == nil {
		f.fault = ""
		return
	}
	text := err.Error()
	if text == f.fault {
		return
	}
	f.fault = text
	if f.leaf.Load() == nil && errors.Is(err, errAbsent) {
		f.options.Log.Info("waiting for a certificate", zap.Error(err)) // as in each new cluster
		return
	}
	f.options.Log.Error("certificate of the secret not served", zap.Bool(logkeys.Serving, f.leaf.Load() != nil), zap.Error(err))
}

func (f *Follower) take(secret Secret) error {
	if secret.Version == "" {
		return fmt.Errorf("secret %s: %w", f.options.Names.Secret, errAbsent)
	}
	now, hosts := f.options.Now(), f.options.Names.hosts()
	leaf, err := parseLeaf(secret.Data[keyLeaf], secret.Data[keyLeafKey])
	if err != nil {
		return fmt.Errorf("%s: %w", keyLeaf, err)
	}
	s, _ := parse(secret.Data, hosts, now)
	if err := verify(leaf, pool(s.trusted()...), hosts, now); err != nil {
		return fmt.Errorf("%s: %w", keyLeaf, err)
	}
	if served := f.leaf.Load(); served != nil && served.Leaf.Equal(leaf.Leaf) {
		return nil
	}
	f.leaf.Store(leaf)
	f.options.Metrics.expires("serving", leaf.Leaf)
	for _, c := range s.trusted() {
		if verify(leaf, pool(c), hosts, now) == nil {
			f.options.Metrics.expires("authority", c)
		}
	}
	f.options.Log.Info("certificate served", zap.String(logkeys.Serial, fmt.Sprintf("%x", leaf.Leaf.SerialNumber)), zap.Time(logkeys.Expires, leaf.Leaf.NotAfter))
	return nil
}
