//go:build !windows

package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/certs"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// led puts the tests into the leader's place: the replica that is there then follows.
func led(t *testing.T) (*cluster.Release, *cluster.Replica) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	release := guarded(t)
	if err := release.StopReplica(ctx, release.Replicas[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := release.GiveUpLead(ctx); err != nil {
			t.Error(err)
		}
		if err := release.AwaitAsked(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := release.Lead(ctx); err != nil {
		t.Error(err)
	}
	replica, err := release.AddReplica(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := release.AwaitAsked(ctx); err != nil {
		t.Fatal(err)
	}
	return release, replica
}

// rotates runs the leader's own rotator with other times, until done is true of what the API server is told to trust
// and what the webhook serves.
func rotates(t *testing.T, release *cluster.Release, o certs.Options, what string, done func(bundle []*x509.Certificate, served *x509.Certificate) bool) {
	t.Helper()
	o.Names = certs.Names{
		Namespace: cluster.Namespace, Service: cluster.Service, Secret: cluster.CertificateSecret,
		Configurations: []string{cluster.ObjectConfiguration, cluster.PolicyConfiguration},
	}
	o.Grace, o.Keep, o.Interval = 2*time.Second, 2*time.Second, time.Second
	store, err := certs.NewCluster(release.Config, o.Names)
	if err != nil {
		t.Fatal(err)
	}
	o.Store = store
	rotator, err := certs.NewRotator(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _ = store.Start(ctx) })
	wait.Go(func() { _ = rotator.Start(ctx) })
	defer wait.Wait()
	defer cancel()
	eventually(t, what, func(ctx context.Context) error {
		bundle, err := at(t).trusted(ctx)
		if err != nil {
			return err
		}
		served, err := handshake(release, nil)
		if err == nil && !done(bundle, served) {
			err = fmt.Errorf("%d certificates are trusted, %s is served", len(bundle), served.SerialNumber)
		}
		return err
	})
}

// trusted are the certificates that the API server verifies the webhook by.
func (s *site) trusted(ctx context.Context) (out []*x509.Certificate, err error) {
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := s.api.Client.Get(ctx, client.ObjectKey{Name: cluster.ObjectConfiguration}, c); err != nil {
		return nil, err
	}
	for rest := c.Webhooks[0].ClientConfig.CABundle; len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, errors.New("caBundle is no PEM")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		out = append(out, certificate)
	}
	return out, nil
}

// handshake makes a connection as the API server does and returns what is served. Without roots nothing is verified.
func handshake(release *cluster.Release, roots []*x509.Certificate) (*x509.Certificate, error) {
	config := &tls.Config{ServerName: cluster.ServiceHost, InsecureSkipVerify: roots == nil}
	if roots != nil {
		config.RootCAs = x509.NewCertPool()
		for _, c := range roots {
			config.RootCAs.AddCert(c)
		}
	}
	conn, err := tls.Dial("tcp", release.Balancer.Address(), config)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

func TestCertificatesRotateWithoutOneCallThatFails(t *testing.T) {
	const year = 365 * 24 * time.Hour
	release, _ := led(t)
	l := load(t, 3, func(i int) client.Object {
		if i%2 == 0 {
			return pod(drivers, driver, pipe)
		}
		return pod(drivers, "", pipe)
	})
	// The API server keeps its connections; somebody else makes a new one again and again, and believes only what the
	// configuration said before.
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var faults []error
	var handshakes atomic.Int64
	wait.Go(func() {
		pace := time.NewTicker(25 * time.Millisecond)
		defer pace.Stop()
		for ; ctx.Err() == nil; <-pace.C {
			roots, err := at(t).trusted(context.WithoutCancel(ctx))
			if err == nil {
				_, err = handshake(release, roots)
			}
			if handshakes.Add(1); err != nil {
				faults = append(faults, err)
			}
		}
	})
	defer wait.Wait()
	defer cancel()

	before, err := at(t).trusted(t.Context())
	if err != nil || len(before) != 1 {
		t.Fatalf("%d certificates: %v", len(before), err)
	}
	both := false
	rotates(t, release, certs.Options{Authority: 10 * year}, "a new authority alone is trusted", func(bundle []*x509.Certificate, served *x509.Certificate) bool {
		both = both || len(bundle) == 2
		return len(bundle) == 1 && !bundle[0].Equal(before[0]) && served.CheckSignatureFrom(bundle[0]) == nil
	})
	if !both {
		t.Error("the old and the new authority were never trusted both")
	}
	old, err := handshake(release, nil)
	if err != nil {
		t.Fatal(err)
	}
	rotates(t, release, certs.Options{Authority: 10 * year, Leaf: year}, "a new certificate is served", func(bundle []*x509.Certificate, served *x509.Certificate) bool {
		return len(bundle) == 1 && !served.Equal(old) && served.CheckSignatureFrom(bundle[0]) == nil
	})

	l.decided(t, 10, 10)
	checked(t, l.stop(), 0)
	eventually(t, "50 handshakes", func(context.Context) error {
		if n := handshakes.Load(); n < 50 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	cancel()
	wait.Wait()
	if len(faults) > 0 {
		t.Errorf("of %d handshakes these failed: %v", handshakes.Load(), errors.Join(faults...))
	}
	t.Logf("%d handshakes", handshakes.Load())
}

func TestAWrongCABundleIsNoticedAndHealed(t *testing.T) {
	release, replica := led(t)
	other := []byte(harness.SelfSigned(t, cluster.ServiceHost).PEM)
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := at(t).api.Client.Get(t.Context(), client.ObjectKey{Name: cluster.ObjectConfiguration}, c); err != nil {
		t.Fatal(err)
	}
	changed(t, c, func() {
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = other
		}
	})
	eventually(t, "the replica is not ready and says why", func(ctx context.Context) error {
		err := replica.Ready(ctx)
		if err == nil {
			return errors.New("it is ready")
		}
		if text := err.Error(); !strings.Contains(text, "not ready: ") || !strings.Contains(text, cluster.ObjectConfiguration) || !strings.Contains(text, "certificate") {
			return fmt.Errorf("another reason: %w", err)
		}
		return nil
	})
	// Meanwhile nothing slips through, and what does not matter is not held up.
	for _, p := range []client.Object{pod(drivers, driver, pipe), pod(drivers, "", pipe)} {
		if err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll); err == nil {
			t.Error("admitted without having been judged")
		}
	}
	created(t, pod(drivers, "", "/var/log"))

	if err := release.GiveUpLead(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the leader has put it right", func(ctx context.Context) error {
		if err := replica.Ready(ctx); err != nil {
			return err
		}
		return at(t).api.Client.Create(ctx, pod(drivers, driver, pipe), client.DryRunAll)
	})
	refused(t, at(t).api.Client.Create(t.Context(), pod(drivers, "", pipe)), "PG001")
}
