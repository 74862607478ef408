package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ahead is how long the served certificate must still be good for: longer than it takes to notice that it is not.
const ahead = 5 * time.Minute

// ConfigurationCopy is where a Chain sees the configurations.
type ConfigurationCopy interface {
	// LatestConfiguration returns a configuration, without a version if there is none, and false while that is not known.
	LatestConfiguration(name string) (Configuration, bool)
}

// ChainOptions say what a Chain compares.
type ChainOptions struct {
	Names Names
	Copy  ConfigurationCopy
	// GetCertificate returns what is served: a Follower's, or that of whatever else supplies the certificate.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
	// Metrics may be nil.
	Metrics *Metrics
}

// Chain knows whether API servers that follow the live configurations accept the certificate that is served.
type Chain struct{ options ChainOptions }

// NewChain returns an error that names every fault of the options.
func NewChain(o ChainOptions) (*Chain, error) {
	err := o.Names.check(false)
	if o.Copy == nil {
		err = errors.Join(err, errors.New("no copy of the configurations"))
	}
	if o.GetCertificate == nil {
		err = errors.Join(err, errors.New("no certificate to check"))
	}
	if err != nil {
		return nil, fmt.Errorf("check certificates: %w", err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Chain{o}, nil
}

// Check is a controller-runtime healthz.Checker. It names every configuration that would refuse the certificate.
func (c *Chain) Check(*http.Request) error {
	served, err := c.options.GetCertificate(nil)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	if served == nil || served.Leaf == nil {
		return fmt.Errorf("certificate: %w", errNoCertificate)
	}
	c.options.Metrics.expires("serving", served.Leaf)
	var faults []error
	for _, name := range c.options.Names.Configurations {
		if err := c.verify(served, name); err != nil {
			faults = append(faults, fmt.Errorf("configuration %s: %w", name, err))
		}
	}
	return errors.Join(faults...)
}

// verify does as an API server does that has the configuration as it is now.
func (c *Chain) verify(served *tls.Certificate, name string) error {
	configuration, known := c.options.Copy.LatestConfiguration(name)
	switch {
	case !known:
		return errors.New("not read yet")
	case !configuration.Exists():
		return errors.New("does not exist")
	case len(configuration.Webhooks) == 0:
		return errors.New("has no webhooks")
	}
	good := map[string]bool{} // bundles; most often there is one
	for _, w := range configuration.Webhooks {
		if good[string(w.Bundle)] {
			continue
		}
		if err := c.accepts(w.Bundle, served); err != nil {
			return fmt.Errorf("webhook %s: %w", w.Name, err)
		}
		good[string(w.Bundle)] = true
	}
	return nil
}

func (c *Chain) accepts(bundle []byte, served *tls.Certificate) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) { // as API servers read it
		return errors.New("caBundle holds no certificate")
	}
	now := c.options.Now()
	for _, at := range []time.Time{now, now.Add(ahead)} {
		if err := verify(served, roots, []string{c.options.Names.host()}, at); err != nil {
			return fmt.Errorf("caBundle does not accept the served certificate (%s) at %s: %w", describe(served.Leaf), at.UTC().Format(time.RFC3339), err)
		}
	}
	return nil
}
