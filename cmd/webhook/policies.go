package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// policies keeps the engine of a webhook without a cluster on the newest policies that are fit to decide.
type policies struct {
	*source
	engine    *policy.Engine
	log       *zap.Logger
	attempted func(policy.Snapshot, error)
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
	err := p.engine.Watch(watch, p.dir, p.bind, func(s policy.Snapshot, err error) {
		p.attempted(s, err)
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
	files, err := p.files()
	if err != nil {
		return err
	}
	before, err := p.activate(ctx, files)
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
		if text, err := os.ReadFile(p.params); err != nil || !bytes.Equal(text, before) {
			before, _ = p.activate(ctx, files) // the error was reported
		}
	}
}

// activate returns the text of the parameters that it read before it activated them.
func (p *policies) activate(ctx context.Context, files policy.Modules) (text []byte, err error) {
	if p.params != "" {
		if text, err = os.ReadFile(p.params); err != nil {
			text = nil
		}
	}
	var s policy.Snapshot
	modules, err := p.bind(files)
	if err == nil {
		s, err = p.engine.Activate(ctx, modules)
	}
	if ctx.Err() == nil {
		p.attempted(s, err)
	}
	return text, err
}
