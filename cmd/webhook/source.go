package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/patience"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	builtin "github.com/pipeguard/pipeguard/policies"
)

// pollFiles is how often files are looked at that nobody gives notice of. The kubelet takes up to a minute to bring a ConfigMap.
const pollFiles = 10 * time.Second

// source says where the base policy and its parameters come from.
type source struct {
	dir    string // empty for the built-in policy
	params string // empty for the defaults
}

// newSource checks that there is something to read.
func newSource(o options) (*source, error) {
	s := &source{dir: o.PolicyDir, params: o.Params}
	if s.dir != "" {
		if info, err := os.Stat(s.dir); err != nil {
			return nil, fmt.Errorf("policy directory: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("policy directory: %s is not a directory", s.dir)
		}
	}
	_, err := s.parameters()
	return s, err
}

// parameters reads the file, or gives the defaults.
func (s *source) parameters() (admission.Parameters, error) {
	if s.params == "" {
		return admission.DefaultParameters(), nil
	}
	return admission.LoadParameters(s.params, policyset.ReadPipePolicy)
}

// warn logs what the author of the parameters' policies, which have no status, may not have meant.
func (s *source) warn(log *zap.Logger) {
	p, err := s.parameters()
	if err != nil { // which the activation says
		return
	}
	for _, text := range p.Warnings() {
		log.Warn(text)
	}
}

// files reads the base policy.
func (s *source) files() (policy.Modules, error) {
	if s.dir == "" {
		return policy.LoadFS(builtin.FS())
	}
	return policy.LoadFS(os.DirFS(s.dir))
}

// bind makes of the files of the policy, with the parameters, what a cluster without policy objects decides by: the same
// files and parameters have the same revision everywhere.
func (s *source) bind(files policy.Modules) (policy.Modules, error) {
	p, err := s.parameters()
	if err != nil {
		return policy.Modules{}, err
	}
	return assemble(files, p, nil, nil)
}

// base is everything that does not come from the cluster.
func (s *source) base() (policy.Modules, admission.Parameters, error) {
	files, err := s.files()
	if err != nil {
		return policy.Modules{}, admission.Parameters{}, err
	}
	p, err := s.parameters()
	return files, p, err
}

// follow calls changed whenever the files have other content, until ctx is done. What cannot be read counts as content.
func (s *source) follow(ctx context.Context, changed func()) error {
	if s.dir == "" && s.params == "" {
		<-ctx.Done()
		return nil
	}
	return followDigest(ctx, s.digest, changed)
}

// followDigest calls changed whenever a digest has become another one and stays it, until ctx is done.
func followDigest(ctx context.Context, digest func() []byte, changed func()) error {
	known := string(digest())
	periodic.Run(ctx, pollFiles, func() {
		_, now, err := patience.Settled(ctx, patience.Quiet, known, func() (none struct{}, key string, err error) { return none, string(digest()), nil })
		if err == nil && now != known { // else the next poll looks again
			known = now
			changed()
		}
	})
	return nil
}

func (s *source) digest() []byte {
	h := sha256.New()
	if s.dir != "" {
		files, err := s.files()
		fmt.Fprintf(h, "%v\x00", err) //nolint:errcheck // a hash takes everything
		for _, name := range slices.Sorted(maps.Keys(files.Files)) {
			fmt.Fprintf(h, "%q %q\x00", name, files.Files[name]) //nolint:errcheck // a hash takes everything
		}
	}
	if s.params != "" {
		text, err := admission.ReadParameters(s.params)
		fmt.Fprintf(h, "%v %q\x00", err, text) //nolint:errcheck // a hash takes everything
	}
	return h.Sum(nil)
}
