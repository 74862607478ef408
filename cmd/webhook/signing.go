package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// signing knows the files that go into bundles: the key that signs them, and Rego for the nodes.
type signing struct {
	key     string
	modules string // a directory, or ""
	log     *zap.Logger

	// tried is the content that was tried last, with the error; of the publisher's goroutine.
	tried    bundle.Bundle
	triedErr error
	hasTried bool
}

// readKey reads the key anew: the kubelet replaces the file when the Secret changes. No error tells any of its text.
func (s *signing) readKey() (*bundle.Key, error) {
	var key *bundle.Key
	text, err := bundle.ReadKeyFile(s.key)
	if err == nil {
		key, err = bundle.ParseKey(text)
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // the name is told once
	}
	if err != nil {
		return nil, fmt.Errorf("key for bundles: %s: %w", s.key, err)
	}
	return key, nil
}

// readModules reads the Rego for nodes; none leaves them with what is built in.
func (s *signing) readModules() (map[string]string, error) {
	if s.modules == "" {
		return nil, nil
	}
	m, err := policy.LoadFS(os.DirFS(s.modules))
	if err != nil {
		return nil, fmt.Errorf("policies for nodes: %s: %w", s.modules, err)
	}
	if len(m.Files) == 0 {
		return nil, fmt.Errorf("policies for nodes: %s: no file ends in .rego", s.modules)
	}
	return m.Files, nil
}

// try compiles the Rego of a bundle beside what is built into nodes and runs its tests, as nodes will: one that does not
// hold would be refused on each of them.
func (s *signing) try(ctx context.Context, b bundle.Bundle) error {
	if len(b.Modules) == 0 {
		return nil
	}
	if s.hasTried && bundle.SameContent(s.tried, b) {
		return s.triedErr
	}
	err := tryModules(ctx, b)
	if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
		s.tried, s.triedErr, s.hasTried = b, err, true
	}
	return err
}

func tryModules(ctx context.Context, b bundle.Bundle) error {
	o := nodepolicy.Options{Policy: nodepolicy.EngineOptions(policy.Options{Timeout: time.Second, BaseTested: true})}
	if _, err := nodepolicy.TryModules(ctx, o, b.Modules); err != nil {
		return fmt.Errorf("Rego for nodes: %w", err) //nolint:staticcheck // a name
	}
	return nil
}

// follow calls changed whenever a file has other content, until ctx is done.
func (s *signing) follow(ctx context.Context, changed func()) error {
	return followDigest(ctx, s.digest, func() {
		s.log.Info("key or Rego for bundles changed")
		changed()
	})
}

// digest is of what the files hold, errors among it.
func (s *signing) digest() []byte {
	var text strings.Builder
	key, err := bundle.ReadKeyFile(s.key)
	fmt.Fprintf(&text, "%v %q\x00", err, key)
	modules, err := s.readModules()
	fmt.Fprintf(&text, "%v\x00", err)
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		fmt.Fprintf(&text, "%q %q\x00", name, modules[name])
	}
	sum := sha256.Sum256([]byte(text.String()))
	return sum[:]
}
