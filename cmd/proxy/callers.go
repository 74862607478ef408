package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/cri"
	"github.com/pipeguard/pipeguard/internal/proxy/kubelet"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// naming is what tells who callers are.
type naming struct {
	peers peer.Resolver
	run   func(context.Context) // until ctx is done
	close func() error
}

// newNaming follows callers to their pods if the configuration says how, and else no further than their processes.
func newNaming(c config.Containers, registry prometheus.Registerer, log *zap.Logger) (*naming, error) {
	if c.Endpoint == "" {
		return &naming{peers: peer.NewResolver(), run: func(ctx context.Context) { <-ctx.Done() }, close: func() error { return nil }}, nil
	}
	dial, err := cri.Dialer(cri.Endpoint{Address: c.Endpoint, Users: c.Users})
	if err != nil {
		return nil, err
	}
	runtime, err := cri.New(cri.Options{Dial: dial, Timeout: c.Timeout, Poll: c.Poll, Log: log})
	if err != nil {
		return nil, err
	}
	if err := runtime.Register(registry); err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	o := peer.Options{Containers: runtime, Timeout: c.NameTimeout}
	if o.Accounts, err = accounts(c, registry); err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	return &naming{peers: peer.New(o), close: runtime.Close, run: func(ctx context.Context) {
		if err := runtime.Run(ctx); err != nil && ctx.Err() == nil {
			log.Error("the container runtime is not watched any more: callers are known by their processes alone", zap.Error(err))
		}
	}}, nil
}

// accounts are the sources of service accounts, in the order in which they are asked.
func accounts(c config.Containers, registry prometheus.Registerer) (peer.Accounts, error) {
	var sources []peer.Accounts
	if k := c.Kubelet; k.URL != "" {
		client, err := kubelet.New(kubelet.Options{
			URL: k.URL, CAFile: k.CAFile, ServerName: k.ServerName, TokenFile: k.TokenFile, CertFile: k.CertFile, KeyFile: k.KeyFile, Timeout: k.Timeout,
		})
		if err != nil {
			return nil, err
		}
		if err := client.Register(registry); err != nil {
			return nil, err
		}
		sources = append(sources, client)
	}
	if c.Snapshot != "" {
		sources = append(sources, kubelet.NewSnapshot(c.Snapshot))
	}
	if len(sources) == 0 {
		return nil, nil
	}
	return kubelet.First(sources...), nil
}

// newTokens returns the guards of the pipes that look at tokens, and what keeps their keys fresh; nil if none does.
func newTokens(t config.Tokens, apis []*apiserver.API, registry prometheus.Registerer, log *zap.Logger) (guards func(pipe string) token.Guard, run func(context.Context), err error) {
	if len(t.Pipes) == 0 {
		return nil, func(context.Context) {}, nil
	}
	checked := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pipeguard_tokens_checked_total", Help: "Calls on pipes that look at tokens, by what came of it."}, []string{"pipe", "outcome"})
	asked := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pipeguard_token_reviews_total", Help: "Questions to the API server about tokens."}, []string{"outcome"})
	registry.MustRegister(checked, asked)
	verifier, err := token.New(t.Verify, token.Metrics{
		Checked: func(pipe, outcome string) { checked.WithLabelValues(pipe, outcome).Inc() },
		Asked:   func(_, outcome string, _ time.Duration) { asked.WithLabelValues(outcome).Inc() },
	})
	if err != nil {
		return nil, nil, fmt.Errorf("tokens: %w", err)
	}
	byPipe := map[string]token.Guard{}
	for _, api := range apis {
		gv := api.GroupVersion()
		mode, named := t.Pipes[gv.String()]
		if !named {
			mode = token.Off
		}
		if byPipe[gv.Pipe()], err = verifier.Guard(gv.String(), mode); err != nil {
			return nil, nil, fmt.Errorf("tokens: %w", err)
		}
	}
	for name := range t.Pipes {
		if _, ok := byPipe["csi-proxy-"+name]; !ok {
			return nil, nil, fmt.Errorf("tokens: pipe %q is not served", name)
		}
	}
	log.Info("tokens are looked at", zap.Int(logkeys.Pipe, len(t.Pipes)))
	return func(pipe string) token.Guard { return byPipe[pipe] }, func(ctx context.Context) { _ = verifier.Run(ctx) }, nil
}
