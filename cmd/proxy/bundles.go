package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/httpsclient"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/proxy/activerules"
)

// bundleInterval is how often the files of bundle and keys are read.
const bundleInterval = 10 * time.Second

// newBundles returns the cluster's rules, nil if the configuration asks for none, and a function that fetches them and keeps them
// fresh until its context is done.
func newBundles(ctx context.Context, c config.Bundle, known []access.API, log *zap.Logger) (*activerules.Bundles, func(context.Context), error) {
	if !c.IsSet() {
		return nil, func(context.Context) {}, nil
	}
	text, keys, err := bundleKeys(c)
	if err != nil {
		return nil, nil, err
	}
	client, err := httpsclient.New(httpsclient.Options{CAFile: c.CAFile})
	if err != nil {
		return nil, nil, fmt.Errorf("bundle: %w", err)
	}
	log = log.With(event(eventBundle))
	n := nodepolicy.New(nodepolicy.Options{Served: known, Policy: nodepolicy.EngineOptions(requestOptions(log))})
	keeper, err := bundle.NewKeeper(ctx, bundle.Options{
		Keys: keys, Audience: c.Pool, MinimumRevision: c.MinimumRevision, Dir: c.Directory(), Prepare: noted(n, log), Log: log,
	})
	if err != nil {
		return nil, nil, err
	}
	run := func(ctx context.Context) {
		var group sync.WaitGroup
		group.Go(func() { _ = keeper.Run(ctx) }) // these end with ctx, and without an error
		group.Go(func() { keeper.FollowKeys(ctx, c.Keys, text, bundleInterval) })
		group.Go(func() {
			if c.URL != "" {
				_ = keeper.Poll(ctx, client, c.URL)
				return
			}
			_ = keeper.Follow(ctx, c.File, bundleInterval)
		})
		group.Wait()
	}
	return &activerules.Bundles{Keeper: keeper, Node: n}, run, nil
}

// bundleKeys reads the pinned public keys.
func bundleKeys(c config.Bundle) (text []byte, keys bundle.Keys, err error) {
	if text, err = bundle.ReadPinnedKeys(c.Keys); err != nil {
		return nil, bundle.Keys{}, fmt.Errorf("bundle: keys: %w", err)
	}
	if keys, err = bundle.ParseKeys(text); err != nil {
		return nil, bundle.Keys{}, fmt.Errorf("bundle: keys: %s: %w", c.Keys, err)
	}
	return text, keys, nil
}

// noted is Prepare that also logs the parts of a bundle that this node cannot apply.
func noted(n *nodepolicy.Node, log *zap.Logger) func(context.Context, bundle.Bundle, bundle.Seal) (func(), error) {
	return func(ctx context.Context, b bundle.Bundle, s bundle.Seal) (func(), error) {
		commit, err := n.Prepare(ctx, b, s)
		if err != nil {
			return nil, err
		}
		return func() {
			commit()
			for _, note := range n.Current().Notes() {
				log.Warn(note)
			}
		}, nil
	}
}

// registerBundle registers the metrics of the bundle.
func registerBundle(registry prometheus.Registerer, rules *activerules.Set) {
	if rules.Bundle() == nil {
		return
	}
	gauge := func(name, help string, value func(bundle.Status) float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(*rules.Bundle()) }))
	}
	gauge("pipeguard_bundle_revision", "Revision of the bundle that was activated last; 0 before the first.", func(s bundle.Status) float64 { return float64(s.Revision) })
	gauge("pipeguard_bundle_valid", "1 if the bundle is in force; 0 if every call is denied for want of a valid one.", func(s bundle.Status) float64 { return isTrue(s.Invalid == "") })
	gauge("pipeguard_bundle_expires_timestamp_seconds", "When the bundle ends, as Unix time.", func(s bundle.Status) float64 {
		if s.ExpiresAt.IsZero() {
			return 0
		}
		return float64(s.ExpiresAt.Unix())
	})
	gauge("pipeguard_bundle_refused", "1 if the bundle that was offered last was refused.", func(s bundle.Status) float64 { return isTrue(s.Refused != nil) })
}
