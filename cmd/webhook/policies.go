package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/pipepath"
	"github.com/pipeguard/pipeguard/internal/policy"
	builtin "github.com/pipeguard/pipeguard/policies"
)

// pollParameters is how often the parameters' file is looked at if no policy directory is watched beside it.
const pollParameters = 10 * time.Second

// source says where policies and parameters come from.
type source struct {
	dir    string // empty for the built-in policy
	params string // empty for the defaults
	// guard is that of the parameters that were read last.
	guard *pipepath.Guard
}

// loadSource checks that there is something to read.
func loadSource(o options) (*source, error) {
	s := &source{dir: o.policyDir, params: o.params}
	if s.dir != "" {
		if info, err := os.Stat(s.dir); err != nil {
			return nil, fmt.Errorf("policy directory: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("policy directory: %s is not a directory", s.dir)
		}
	}
	_, err := s.data()
	return s, err
}

// data reads the parameters, as data for the policies and as the guard that goes with them.
func (s *source) data() (map[string]any, error) {
	p := admission.DefaultParameters()
	if s.params != "" {
		var err error
		if p, err = admission.LoadParameters(s.params); err != nil {
			return nil, err
		}
	}
	guard, err := p.Guard()
	if err != nil {
		return nil, err
	}
	s.guard = guard
	return p.Data(), nil
}

// policies keeps the engine on the newest policies that are fit to decide.
type policies struct {
	*source
	engine    *policy.Engine
	reviewer  *admission.Reviewer
	log       *zap.Logger
	metrics   *policyMetrics
	activated func() // called after each activation
	poll      time.Duration
}

// run activates policies at once and whenever their files change. It returns an error if the first ones are unfit:
// there is nothing to fall back to then.
func (p *policies) run(ctx context.Context) error {
	if p.dir == "" {
		return p.followParameters(ctx)
	}
	var first error
	watch, cancel := context.WithCancel(ctx)
	defer cancel()
	err := p.engine.Watch(watch, p.dir, p.data, func(s policy.Snapshot, err error) {
		p.result(s, err)
		if _, ok := p.engine.Active(); !ok {
			first = fmt.Errorf("policy directory %s: %w", p.dir, err)
			cancel()
		}
	})
	if err != nil {
		return err
	}
	return first
}

// followParameters activates the built-in policy with the parameters of the file, again and again as that changes.
func (p *policies) followParameters(ctx context.Context) error {
	modules, err := policy.LoadFS(builtin.FS())
	if err != nil {
		return err
	}
	before, err := p.activate(ctx, modules)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if p.params == "" {
		<-ctx.Done()
		return nil
	}
	ticker := time.NewTicker(p.poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if text, err := os.ReadFile(p.params); err != nil || !bytes.Equal(text, before) { // #nosec G304 -- the operator names the file
			before, _ = p.activate(ctx, modules) // the error was reported
		}
	}
}

// activate returns the text of the parameters that it read before it activated them.
func (p *policies) activate(ctx context.Context, modules policy.Modules) (text []byte, err error) {
	if p.params != "" {
		if text, err = os.ReadFile(p.params); err != nil { // #nosec G304 -- the operator names the file
			text = nil
		}
	}
	var s policy.Snapshot
	data, err := p.data()
	if err == nil {
		s, err = p.engine.Activate(ctx, modules.WithData(data))
	}
	if ctx.Err() == nil {
		p.result(s, err)
	}
	return text, err
}

// result takes note of an attempt. The guard follows the policies: it belongs to the same parameters.
func (p *policies) result(s policy.Snapshot, err error) {
	p.metrics.attempted(s, err)
	if err != nil {
		p.log.Error("policies not activated", zap.Error(err))
		return
	}
	p.reviewer.SetGuard(p.guard)
	p.activated()
}
