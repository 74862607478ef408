package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// setTokens sets the checks of callers' tokens and of the cluster's roles, and returns a function that keeps the keys fresh until
// its context is done. node is this node's name in the cluster.
func setTokens(o *proxy.Options, t config.Tokens, node string, registry prometheus.Registerer, log *zap.Logger) (run func(context.Context), err error) {
	if len(t.Pipes) == 0 && len(t.Roles) == 0 {
		return func(context.Context) {}, nil
	}
	t.Verify.Node = cmp.Or(t.Verify.Node, node)
	verifier, err := newVerifier(t.Verify, registry, log)
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // of the pipes that are served, by the names that configurations have
	for _, api := range o.APIs {
		gv := api.GroupVersion()
		names[gv.String()] = gv.Pipe()
	}
	guards, roles := map[string]token.Guard{}, map[string]bool{}
	for name, mode := range t.Pipes {
		if names[name] == "" {
			return nil, fmt.Errorf("tokens.pipes: pipe %q is not served", name)
		}
		if guards[names[name]], err = verifier.Guard(name, mode); err != nil {
			return nil, fmt.Errorf("tokens: %w", err)
		}
	}
	for _, name := range t.Roles {
		if names[name] == "" {
			return nil, fmt.Errorf("tokens.roles: pipe %q is not served", name)
		}
		roles[names[name]] = true
	}
	off, err := verifier.Guard("", token.Off)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	o.Tokens = func(pipe string) token.Guard {
		if guard, ok := guards[pipe]; ok {
			return guard
		}
		return off
	}
	o.Roles = func(pipe string) proxy.Roles {
		if roles[pipe] {
			return verifier
		}
		return nil
	}
	log.Info("tokens are checked", zap.Int(logkeys.Pipe, len(t.Pipes)), zap.Strings("roles", t.Roles))
	return func(ctx context.Context) { _ = verifier.Run(ctx) }, nil // it ends with its context
}

func newVerifier(c token.Config, registry prometheus.Registerer, log *zap.Logger) (*token.Verifier, error) {
	checked := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pipeguard_tokens_checked_total", Help: "Calls on pipes that look at tokens, by what came of it."}, []string{"pipe", "outcome"})
	asked := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pipeguard_token_reviews_total", Help: "Questions to the API server about tokens and roles."}, []string{"kind", "outcome"})
	authorized := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pipeguard_roles_asked_total", Help: "Calls about which the cluster's roles were asked, by what came of it."}, []string{"pipe", "outcome"})
	registry.MustRegister(checked, asked, authorized)
	v, err := token.New(c, token.Metrics{
		Checked:    func(pipe, outcome string) { checked.WithLabelValues(pipe, outcome).Inc() },
		Asked:      func(kind, outcome string, _ time.Duration) { asked.WithLabelValues(kind, outcome).Inc() },
		Authorized: func(pipe, outcome string) { authorized.WithLabelValues(pipe, outcome).Inc() },
		Reloaded: func(err error) {
			if err != nil {
				log.Error("the file with the cluster's keys is invalid: the previous keys stay in force", zap.String(logkeys.Path, c.Keys), zap.Error(err))
				return
			}
			log.Info("keys of the cluster read again", zap.String(logkeys.Path, c.Keys))
		},
	})
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return v, nil
}
