package main

import (
	"context"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// policies keeps the engine of a webhook without a cluster on the newest policies that are fit to decide.
type policies struct {
	*source
	engine    *policy.Engine
	attempted func(policy.Snapshot, error)
	poll      time.Duration
}

// run activates policies at once and whenever their files change. It returns an error if the first ones are unfit:
// there is nothing to fall back to then.
func (p *policies) run(ctx context.Context) error {
	var first error
	follow, cancel := context.WithCancel(ctx)
	defer cancel()
	attempted := func(s policy.Snapshot, err error) {
		p.attempted(s, err)
		if _, ok := p.engine.Active(); !ok {
			first = err
			cancel()
		}
	}
	if p.dir == "" { // the built-in policy, whose parameters may change
		p.engine.Follow(follow, p.poll, p.load, attempted)
		return first
	}
	if err := p.engine.Watch(follow, p.dir, p.bind, attempted); err != nil {
		return err
	}
	if first != nil {
		return fmt.Errorf("policy directory %s: %w", p.dir, first)
	}
	return nil
}

// load reads the policy and its parameters.
func (p *policies) load() (policy.Modules, error) {
	files, err := p.files()
	if err != nil {
		return policy.Modules{}, err
	}
	return p.bind(files)
}
