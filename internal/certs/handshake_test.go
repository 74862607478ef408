package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// delayed is a replica's copy of the Secret that is late.
type delayed struct {
	*memory
	by      time.Duration
	changes chan struct{}
}

func (d delayed) SecretChanges() <-chan struct{} { return d.changes }

func (d delayed) LatestSecret() (Secret, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := within(d.secrets, time.Now().Add(-d.by))
	return seen[0], true // the oldest that may still stand
}

// replica serves TLS with a Follower that hears of the Secret late.
func replica(t *testing.T, m *memory, late time.Duration) *Follower {
	t.Helper()
	d := delayed{m, late, make(chan struct{}, 1)}
	f := follow(t, d)
	session := m.connect()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		for periodic.Wait(ctx, 1<<62, session.changes) {
			time.AfterFunc(late, func() { periodic.Signal(d.changes) })
		}
	}()
	return f
}

// handshake connects an API server that hears of configurations late.
func handshake(m *memory, late time.Duration, f *Follower) error {
	for _, name := range names.Configurations {
		m.mu.Lock()
		bundle := within(m.bundles[name], time.Now().Add(-late))[0]
		m.mu.Unlock()
		if len(bundle) != 1 {
			return fmt.Errorf("configuration %s has %d bundles", name, len(bundle))
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM([]byte(bundle[0]))
		near, far := net.Pipe()
		var served error
		var group sync.WaitGroup
		group.Go(func() {
			server := tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: f.GetCertificate})
			_, served = server.Write([]byte("ok")) // after the handshake
			far.Close()
		})
		client := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: names.host()})
		_, err := client.Read(make([]byte, 2))
		near.Close()
		group.Wait()
		if err != nil {
			return fmt.Errorf("configuration %s at %s: %w", name, time.Now(), errors.Join(err, served))
		}
	}
	return nil
}

func TestHandshakesGoOnThroughAHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		stop := lead(t, m.connect(), weeks)
		var replicas []*Follower
		for _, late := range []time.Duration{0, time.Second, lag} {
			replicas = append(replicas, replica(t, m, late))
		}
		settle()
		pass(t, m, 28*day-12*time.Hour, 12*time.Hour)
		pass(t, m, 10*time.Hour, 2*time.Hour)
		stop()
		before := m.content()[keyAuthority]
		defer lead(t, m.connect(), weeks)()
		serials := map[string]bool{}
		connect := func() {
			t.Helper()
			for _, f := range replicas {
				for _, late := range []time.Duration{0, slow} {
					if err := handshake(m, late, f); err != nil {
						t.Fatal(err)
					}
				}
				if c, err := f.GetCertificate(nil); err == nil {
					serials[c.Leaf.SerialNumber.String()] = true
				}
			}
		}
		begun := m.connect()
		periodic.Wait(t.Context(), 16*time.Hour, begun.changes)
		quiet := time.Now() // since the newest write
		for end := quiet.Add(2 * time.Hour); time.Now().Before(end); {
			synctest.Wait()
			connect()
			step := 5 * time.Minute
			if time.Since(quiet) < 3*time.Minute {
				step = 5 * time.Second
			}
			if at := time.Now(); !periodic.Wait(t.Context(), step, begun.changes) || time.Since(at) < step {
				quiet = time.Now()
			}
		}
		if string(before) == string(m.content()[keyAuthority]) {
			t.Error("there was no hand-over")
		}
		expectSettled(t, m)
		if len(serials) < 2 {
			t.Errorf("%d certificates were served, want two at least", len(serials))
		}
	})
}
