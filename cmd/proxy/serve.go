package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/activerules"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/version"
)

// proxyProgram is a proxy with its flags and its configuration.
type proxyProgram struct {
	flags    *flags
	settings config.Proxy
	log      *zap.Logger
	stdout   io.Writer
	live     atomic.Pointer[live] // nil until the access list is loaded
}

// reload has the configuration read again. Before the first one is loaded it does nothing.
func (p *proxyProgram) reload() {
	if l := p.live.Load(); l != nil {
		l.ask()
	}
}

// serve puts the parts together and runs until ctx is done. It calls ready once the pipes are open.
func (p *proxyProgram) serve(ctx context.Context, ready func()) (err error) {
	p.log.Info("starting", event(eventStarting), zap.String(logkeys.Version, version.Number()))
	access, fetch, err := p.rules(ctx)
	if isAsked(ctx, err) {
		return nil
	}
	if err != nil {
		return because(exitConfiguration, err)
	}
	node, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name of this node: %w", err)
	}
	ctx, shutdown := context.WithCancelCause(ctx)
	defer shutdown(nil)
	records, err := openAuditLog(ctx, p.flags.auditPath(p.settings.Audit), auditOptions{
		settings: p.settings.Audit, node: node, stdout: p.stdout, log: p.log,
		shutdown: func(err error) { shutdown(because(exitAuditLog, fmt.Errorf("audit log: %w", err))) },
	})
	if isAsked(ctx, err) {
		return nil
	}
	if err != nil {
		return because(exitAuditLog, err)
	}
	defer func() { err = errors.Join(err, because(exitAuditLog, records.close())) }()
	state := &readiness{checks: []func() error{records.works, access.works}}
	registry := newRegistry()
	access.register(registry)
	registerBundle(registry, access.rules)
	records.register(registry)
	names, err := newNaming(p.settings.Containers, p.flags.node(node), registry, p.log)
	if err != nil {
		return because(exitConfiguration, fmt.Errorf("containers: %w", err))
	}
	defer func() { err = errors.Join(err, names.close()) }()
	o := proxy.Options{
		Peers: names.peers, Rules: access.rules.Rules, Audit: records, Overdue: records.overdue, Limits: limits(p.settings.Limits),
		Log: p.log, Registerer: registry, Node: node,
	}
	closeHost, err := p.backend(&o, state)
	if err != nil {
		return because(exitHost, err)
	}
	defer func() { err = errors.Join(err, because(exitHost, closeHost())) }()
	opened, err := p.newPipes(registry)
	if err != nil {
		return because(exitConfiguration, err)
	}
	state.checks = append(state.checks, opened.Fault)
	o.Listen = opened.listen(len(o.APIs)+len(p.settings.Forward), func() {
		state.open.Store(true)
		p.log.Info("serving", event(eventServing), zap.String(logkeys.Version, version.Number()),
			zap.String(logkeys.Revision, access.revision()))
		ready()
	})
	freshen, err := setTokens(&o, p.settings.Tokens, p.flags.node(node), registry, p.log)
	if err != nil {
		return because(exitConfiguration, err)
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { names.run(background) })
	running.Go(func() { opened.run(ctx, background) })
	running.Go(func() { freshen(background) })
	running.Go(func() { fetch(background) })
	defer running.Wait()
	defer stop()
	server, err := proxy.New(o)
	if err != nil {
		return err
	}
	stopMetrics, err := serveMetrics(p.flags.metricsAddress, registry, func(mux *http.ServeMux) {
		state.routes(mux)
		serveState(mux, node, access.rules, records, func() []string { return opened.now(state) })
	}, p.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopMetrics()) }()
	defer func() { records.missing(server.Unwritten()) }()
	return p.run(ctx, server, access, state)
}

// isAsked says whether a start ended with err because the process was asked to stop meanwhile.
func isAsked(ctx context.Context, err error) bool {
	return errors.Is(err, context.Canceled) && errors.Is(context.Cause(ctx), context.Canceled)
}

// rules returns the rules for calls, and a function that fetches the cluster's part of them until its context is done.
func (p *proxyProgram) rules(ctx context.Context) (access *live, fetch func(context.Context), err error) {
	known, err := knownAPIs(p.settings)
	if err != nil {
		return nil, nil, err
	}
	local, err := localRules(ctx, p.settings, p.log)
	if err != nil {
		return nil, nil, err
	}
	sayConfig(p.flags.config, p.settings, local.Policy.Revision, p.log)
	bundles, fetch, err := newBundles(ctx, p.settings.Bundle, known, p.log)
	if err != nil {
		return nil, nil, err
	}
	build := func(settings config.Proxy) (*proxy.Rules, error) {
		return localRules(context.WithoutCancel(ctx), settings, p.log)
	}
	access = newLive(p.flags, p.settings, build, activerules.New(bundles), p.log)
	access.use(p.settings, local)
	p.live.Store(access)
	return access, fetch, nil
}

// backend sets the host or the servers that calls go to, and returns a function that closes them.
func (p *proxyProgram) backend(o *proxy.Options, state *readiness) (end func() error, err error) {
	name := p.flags.backend(p.settings)
	closeLinks, err := p.passOn(name, o, state)
	if err != nil || name == hostUpstream {
		return closeLinks, err
	}
	closeHost, err := p.ownHost(name, o, state)
	if err != nil {
		return nil, errors.Join(err, closeLinks())
	}
	return func() error { return errors.Join(closeHost(), closeLinks()) }, nil
}

// ownHost has calls carried out by this process.
func (p *proxyProgram) ownHost(name string, o *proxy.Options, state *readiness) (closeHost func() error, err error) {
	roots, err := p.flags.roots()
	if err != nil {
		return nil, err
	}
	h, err := newHost(name, p.flags.hostOptions(roots, p.log))
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", name, err)
	}
	handlers, err := handler.New(h.Hosts, roots)
	if err == nil {
		o.APIs, err = apiserver.Load(handlers.Groups()...)
	}
	if err == nil {
		err = o.Registerer.Register(&mappings{host: h.mapper, log: p.log})
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	o.Handle = handlers.Handle
	state.checks = append(state.checks, h.check)
	logPipes(p.log, name, o.APIs)
	return h.close, nil
}

// roots are the directories that paths in requests must lie in.
func (f *flags) roots() (*safepath.Roots, error) {
	roots, err := safepath.NewRoots(append([]string{f.kubeletPath}, f.workingDirs...)...)
	if err != nil {
		return nil, fmt.Errorf("working directories: %w", err)
	}
	return roots, nil
}

// stopReading is how long a stop waits for a configuration that is being read.
const stopReading = 2 * time.Second

// run serves until ctx is done. The cause of that is returned if it is a fault.
func (p *proxyProgram) run(ctx context.Context, server *proxy.Server, access *live, state *readiness) error {
	following, stop := context.WithCancel(ctx)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		access.follow(following)
	}()
	context.AfterFunc(following, func() { state.open.Store(false) })
	err := server.Run(ctx)
	stop()
	select {
	case <-followed:
	case <-time.After(stopReading):
		p.log.Warn("stopped while the configuration was being read, which nothing interrupts")
	}
	if f, ok := errors.AsType[*fault](context.Cause(ctx)); ok {
		err = errors.Join(f, err)
	}
	return err
}

func limits(l config.Limits) proxy.Limits {
	return proxy.Limits{
		Connections: l.Connections, ConnectionsPerCaller: l.ConnectionsPerCaller,
		PrefaceTimeout: l.PrefaceTimeout, StopTimeout: l.StopTimeout,
		Operations: l.Operations, Waiting: l.Waiting, OperationTimeout: l.OperationTimeout,
	}
}
