package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/controller"
	"github.com/pipeguard/pipeguard/internal/controller/leader"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// bundlesPath is where nodes get their bundles, by the name of their pool.
const bundlesPath = "/bundles/"

var errNothingActive = errors.New("no policies are active")

// bundles gives the policies that decide here to the nodes: signed by the leader, and served by every replica. What is
// wrong with them is told in the status of the policies and in the log, and keeps no review from being answered.
type bundles struct {
	signing   *signing
	publisher *publish.Publisher
	server    *publish.Server
	syncer    *publish.Syncer
	serve     bool
	activated func() (controller.Activated, bool)
	refresh   func() // has statuses looked at
	unread    func(context.Context, publish.Result) ([]string, error)
	metrics   *publish.Metrics

	attempt string // that the content is of which Source returned last; of the publisher's goroutine
	mu      sync.Mutex
	told    controller.Bundles // guarded by mu

	once  sync.Once
	first chan struct{} // closed when policies were activated for the first time
}

// newBundles returns nil if the options do not ask for bundles.
func newBundles(o bundleOptions, config *rest.Config, registry prometheus.Registerer, log *zap.Logger) (*bundles, error) {
	if o.Key == "" {
		return nil, nil //nolint:nilnil // off
	}
	store, err := publish.NewConfigMaps(config, o.Namespace)
	if err != nil {
		return nil, err
	}
	b := &bundles{
		signing: &signing{key: o.Key, modules: o.Modules, log: log},
		server:  publish.NewServer(o.Pools),
		serve:   o.Serve,
		metrics: publish.NewMetrics(registry),
		first:   make(chan struct{}),
	}
	if b.publisher, err = publish.New(publish.Options{
		Store: store, Key: b.signing.readKey, Pools: o.Pools, Life: o.Life, MinimumRevision: o.MinimumRevision,
		Source: b.content, Tell: b.tell, Log: log,
		Unread: func(ctx context.Context, r publish.Result) ([]string, error) { return b.unread(ctx, r) },
	}); err != nil {
		return nil, err
	}
	b.syncer = &publish.Syncer{Store: store, Server: b.server, Changed: b.publisher.Changed, Log: log}
	return b, nil
}

// add gives the leader, every replica's manager and a server the parts.
func (b *bundles) add(mgr manager.Manager, leads *leader.Group, s *server, parts *controller.Parts) error {
	b.activated, b.refresh = parts.Activator.Activated, parts.Refresh
	leads.Add(b)
	if err := mgr.Add(b.syncer); err != nil {
		return fmt.Errorf("publish bundles: %w", err)
	}
	if b.serve {
		s.webhook.Register(bundlesPath, s.leave.whileLeaving(b.server))
	}
	s.tasks = append(s.tasks,
		func(ctx context.Context) error { return b.signing.follow(ctx, b.publisher.Changed) },
		func(ctx context.Context) error {
			<-ctx.Done()
			b.server.Leave()
			return nil
		},
	)
	return nil
}

// attempted hears of each attempt to activate policies.
func (b *bundles) attempted(err error) {
	if b == nil || err != nil {
		return
	}
	b.once.Do(func() { close(b.first) })
	b.publisher.Changed()
}

// Start publishes from the first policies on, until ctx is done. It can be called again after that.
func (b *bundles) Start(ctx context.Context) error {
	defer b.forget()
	select {
	case <-ctx.Done():
		return nil
	case <-b.first:
		return b.publisher.Start(ctx)
	}
}

// content is that of the bundles: the PipePolicies that decide at admission, under the revision that admission names.
func (b *bundles) content(ctx context.Context) (bundle.Bundle, error) {
	active, ok := b.activated()
	if !ok {
		return bundle.Bundle{}, errNothingActive
	}
	b.attempt = active.Attempt
	modules, err := b.signing.readModules()
	if err != nil {
		return bundle.Bundle{}, err
	}
	content, err := policyset.BundleSources{
		PipePolicies: active.PipePolicies, Parameters: active.Parameters, PolicyRevision: active.Revision, Modules: modules,
	}.Bundle()
	if err != nil {
		return bundle.Bundle{}, err
	}
	return content, b.signing.try(ctx, content)
}

// tell takes note of what became of the bundles. Statuses are looked at only if it is something else than before.
func (b *bundles) tell(results []publish.Result) {
	b.metrics.Attempted(results)
	ok, reason, message := publish.Condition(results)
	next := controller.Bundles{Attempt: b.attempt, IsPublished: ok, Reason: string(reason), Message: message}
	b.mu.Lock()
	same := b.told == next
	b.told = next
	b.mu.Unlock()
	if !same {
		b.refresh()
	}
}

// forget ends what is told with the leader's term.
func (b *bundles) forget() {
	b.metrics.Clear()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.told = controller.Bundles{}
}

// report is controller.Options.Bundles.
func (b *bundles) report() func() controller.Bundles {
	if b == nil {
		return nil
	}
	return func() controller.Bundles {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.told
	}
}

// check completes the options, and reports what is wrong with them.
func (o *bundleOptions) check(podNamespace string, fault report) {
	if o.Key == "" {
		if o.Pools != nil || o.Life != 0 || o.MinimumRevision != 0 || o.Namespace != "" || o.Modules != "" || !o.Serve {
			fault("bundles", "there are none without key")
		}
		return
	}
	if o.Pools == nil {
		o.Pools = []string{"default"}
	}
	o.Namespace = cmp.Or(o.Namespace, podNamespace)
	for _, err := range publish.CheckPools(o.Pools, o.Life) {
		fault("bundles", "%v", err)
	}
}
