package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/internal/proxy/safepath"
	"github.com/pipeguard/pipeguard/internal/version"
)

// groups are the API groups that this build knows. The host decides which of them it can serve.
func groups() []string { return []string{"filesystem", "volume", "system"} }

// serve puts the parts together and runs until ctx is done.
func serve(ctx context.Context, f *flags, log *zap.Logger, stdout io.Writer) (err error) {
	log.Info("starting", zap.String(logkeys.Version, version.Number()))
	settings, policy, err := loadConfig(f.config, log)
	if err != nil {
		return err
	}
	roots, err := safepath.NewRoots(append([]string{f.kubeletPath}, f.workingDirs...)...)
	if err != nil {
		return fmt.Errorf("working directories: %w", err)
	}
	hosts, err := newHosts(f.host, roots, log)
	if err != nil {
		return fmt.Errorf("host %s: %w", f.host, err)
	}
	handlers, err := handler.New(hosts, roots)
	if err != nil {
		return err
	}
	apis, err := apiserver.Load(handlers.Groups()...)
	if err != nil {
		return err
	}
	logPipes(log, f.host, apis)
	records, err := openAuditLog(f, settings.Audit, stdout, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.close()) }()
	registry := newRegistry()
	node, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("name of this node: %w", err)
	}
	server, err := proxy.New(proxy.Options{
		APIs:   apis,
		Handle: handlers.Handle,
		Listen: func(name string) (net.Listener, error) {
			return pipe.Listen(name, pipe.Options{SocketDir: f.socketDir, SDDL: f.sddl})
		},
		Peers:      peer.NewResolver(),
		ACL:        func() *acl.Policy { return policy },
		Audit:      records,
		Limits:     limits(settings.Limits),
		Log:        log,
		Registerer: registry,
		Node:       node,
	})
	if err != nil {
		return err
	}
	stopMetrics, err := serveMetrics(f.metricsAddress, registry, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopMetrics()) }()
	return runServer(ctx, server, records, log)
}

// runServer keeps the audit log alive for as long as the server may need it, which is longer than ctx.
func runServer(ctx context.Context, server *proxy.Server, records *auditLog, log *zap.Logger) error {
	keeping, stopKeeping := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { records.keep(keeping, log) })
	err := server.Run(ctx)
	stopKeeping()
	keeper.Wait()
	return err
}

func loadConfig(file string, log *zap.Logger) (config.Proxy, *acl.Policy, error) {
	settings, err := config.LoadProxy(file)
	if err != nil {
		return settings, nil, err
	}
	apis, err := apiserver.Load(groups()...)
	if err != nil {
		return settings, nil, err
	}
	var known []acl.API
	for _, api := range apis {
		entry := acl.API{Group: api.GroupVersion().Group, Version: api.GroupVersion().Version}
		for _, op := range api.Operations() {
			entry.Operations = append(entry.Operations, op.Name)
		}
		known = append(known, entry)
	}
	policy, err := settings.Policy(known)
	if err != nil {
		return settings, nil, err
	}
	if settings.IsMissing() {
		log.Error("no configuration: EVERY CALL WILL BE DENIED", zap.String(logkeys.Config, file))
	} else {
		log.Info("access list loaded", zap.String(logkeys.Config, file), zap.String(logkeys.Revision, policy.Revision()))
	}
	return settings, policy, nil
}

// logPipes names in one line what is served, and what csi-proxy.exe would serve and this host does not.
func logPipes(log *zap.Logger, host string, apis []*apiserver.API) {
	var names []string
	for _, api := range apis {
		names = append(names, api.GroupVersion().String())
	}
	log.Info("pipes to serve; no other csi-proxy pipe is", zap.String(logkeys.Name, host), zap.Strings(logkeys.Pipe, names))
}

func limits(l config.Limits) proxy.Limits {
	return proxy.Limits{
		Connections: l.Connections, ConnectionsPerCaller: l.ConnectionsPerCaller,
		PrefaceTimeout: l.PrefaceTimeout, StopTimeout: l.StopTimeout,
	}
}
