package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

var names = Names{Namespace: "pipeguard-system", Service: "pipeguard-webhook", Secret: "pipeguard-webhook-cert", Configurations: []string{"pipeguard-webhook", "pipeguard-policies"}}

// event is what something became at a time.
type event[T any] struct {
	at    time.Time
	value T
}

// memory is an API server's storage that remembers what it held.
type memory struct {
	mu             sync.Mutex // guards what follows
	version        int
	secret         Secret
	configurations map[string]Configuration
	secrets        []event[Secret]
	bundles        map[string][]event[[]string] // distinct ones of a configuration
	leaves         []event[*tls.Certificate]    // what a replica serves that has seen every Secret
	writes         int
	listeners      []chan struct{}
	onWrite        func(n int)
}

// newMemory has both configurations, with two webhooks each, and a Secret without content.
func newMemory() *memory {
	m := &memory{configurations: map[string]Configuration{}, bundles: map[string][]event[[]string]{}, onWrite: func(int) {}}
	m.setSecret(map[string][]byte{})
	for _, name := range names.Configurations {
		m.setConfiguration(Configuration{Name: name, Webhooks: []Webhook{{Name: "one." + name}, {Name: "two." + name}}})
	}
	return m
}

// setSecret changes the Secret as anybody might; nil deletes it.
func (m *memory) setSecret(data map[string][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putSecret(data)
}

func (m *memory) putSecret(data map[string][]byte) {
	m.version++
	m.secret = Secret{}
	if data != nil {
		m.secret = Secret{Data: maps.Clone(data), UID: "uid", Version: strconv.Itoa(m.version)}
	}
	m.secrets = append(m.secrets, event[Secret]{time.Now(), m.secret})
	follower := Follower{options: FollowerOptions{Names: names, Now: time.Now, Log: quiet}}
	if n := len(m.leaves); n > 0 {
		follower.leaf.Store(m.leaves[n-1].value)
	}
	_ = follower.take(m.secret) // or it keeps what it has
	m.leaves = append(m.leaves, event[*tls.Certificate]{time.Now(), follower.leaf.Load()})
	m.notify()
}

// setConfiguration changes a configuration as anybody might.
func (m *memory) setConfiguration(c Configuration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.putConfiguration(c)
}

func (m *memory) putConfiguration(c Configuration) {
	m.version++
	c.Version = strconv.Itoa(m.version)
	c.Edition = c.Version
	c.Webhooks = slices.Clone(c.Webhooks)
	m.configurations[c.Name] = c
	var bundles []string
	for _, w := range c.Webhooks {
		bundles = append(bundles, string(w.Bundle))
	}
	slices.Sort(bundles)
	m.bundles[c.Name] = append(m.bundles[c.Name], event[[]string]{time.Now(), slices.Compact(bundles)})
	m.notify()
}

func (m *memory) deleteConfiguration(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.configurations, name)
	delete(m.bundles, name)
	m.notify()
}

func (m *memory) notify() {
	for _, l := range m.listeners {
		periodic.Signal(l)
	}
}

func (m *memory) content() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.secret.Data)
}

func (m *memory) configuration(name string) Configuration {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.configurations[name]
	if !ok {
		return Configuration{Name: name}
	}
	c.Webhooks = slices.Clone(c.Webhooks)
	return c
}

func (m *memory) written() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// within returns what stood at any time from since on, oldest first.
func within[T any](all []event[T], since time.Time) []T {
	var out []T
	for i, e := range all {
		if i+1 < len(all) && !all[i+1].at.After(since) {
			continue // replaced before
		}
		out = append(out, e.value)
	}
	return out
}

// misses tries every certificate that a replica may serve which learns of the Secret up to lag late, with every bundle
// that an API server may hold which learns of configurations up to slow late.
func (m *memory) misses(slow, lag time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	leaves := slices.Compact(within(m.leaves, now.Add(-lag)))
	for name, all := range m.bundles {
		tried := map[string]bool{}
		for _, bundle := range slices.Concat(within(all, now.Add(-slow))...) {
			if tried[bundle] {
				continue
			}
			tried[bundle] = true
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(bundle))
			for _, leaf := range leaves {
				if leaf == nil {
					return errors.New("nothing is served")
				}
				if err := verify(leaf, roots, []string{names.host()}, now); err != nil {
					return fmt.Errorf("configuration %s at %s: %w", name, now, err)
				}
			}
		}
	}
	return nil
}

// session is one process's connection.
type session struct {
	*memory
	changes chan struct{}
	latency func() time.Duration
	broken  func(call string) error // guarded by mu; nil if nothing is broken
}

// fail has calls fail as f says.
func (s *session) fail(f func(call string) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = f
}

func (m *memory) connect() *session {
	s := &session{memory: m, changes: make(chan struct{}, 1), latency: func() time.Duration { return 0 }}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners = append(m.listeners, s.changes)
	return s
}

func (s *session) travel(ctx context.Context, call string) error {
	periodic.Sleep(ctx, s.latency())
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if broken != nil {
		if err := broken(call); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (s *session) Changes() <-chan struct{} { return s.changes }

func (s *session) Secret(ctx context.Context) (Secret, error) {
	if err := s.travel(ctx, names.Secret); err != nil {
		return Secret{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return Secret{Data: maps.Clone(s.secret.Data), UID: s.secret.UID, Version: s.secret.Version}, nil
}

func (s *session) WriteSecret(ctx context.Context, to Secret) error {
	if err := s.travel(ctx, "write "+names.Secret); err != nil {
		return err
	}
	s.mu.Lock()
	if s.secret.Version != to.Version {
		s.mu.Unlock()
		return ErrConflict
	}
	s.putSecret(to.Data)
	s.mu.Unlock()
	return s.wrote(ctx)
}

func (s *session) Configurations(ctx context.Context) ([]Configuration, error) {
	var all []Configuration
	var errs []error
	for _, name := range names.Configurations {
		if err := s.travel(ctx, name); err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, s.configuration(name))
	}
	return all, errors.Join(errs...)
}

func (s *session) WriteBundle(ctx context.Context, to Configuration, bundle []byte) error {
	if err := s.travel(ctx, "write "+to.Name); err != nil {
		return err
	}
	s.mu.Lock()
	c := s.configurations[to.Name]
	if c.Version != to.Version {
		s.mu.Unlock()
		return ErrConflict
	}
	c.Webhooks = slices.Clone(c.Webhooks)
	for i := range c.Webhooks {
		c.Webhooks[i].Bundle = bundle
	}
	s.putConfiguration(c)
	s.mu.Unlock()
	return s.wrote(ctx)
}

// wrote counts a write that took effect. Whoever wrote may not live to hear of it.
func (s *session) wrote(ctx context.Context) error {
	s.mu.Lock()
	s.writes++
	n, on := s.writes, s.onWrite
	s.mu.Unlock()
	on(n)
	return ctx.Err()
}

// LatestSecret implements SecretCopy, without delay.
func (s *session) LatestSecret() (Secret, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.secret, true
}

// SecretChanges implements SecretCopy.
func (s *session) SecretChanges() <-chan struct{} { return s.changes }
