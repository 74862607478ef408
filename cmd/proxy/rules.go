package main

import (
	"context"
	"fmt"
	"os"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// localRules are the rules of the node's own configuration, checked against the known APIs, with its request policy activated.
func localRules(ctx context.Context, settings config.Proxy, log *zap.Logger) (*proxy.Rules, error) {
	list, err := compare(settings)
	if err != nil {
		return nil, err
	}
	modules, err := requestModules(settings)
	if err != nil {
		return nil, err
	}
	judge, err := requestpolicy.New(requestOptions(log))
	if err != nil {
		return nil, err
	}
	if _, err := judge.Activate(ctx, modules); err != nil {
		return nil, fmt.Errorf("request policy: %w", err)
	}
	rules := proxy.Listed(list)
	rules.RequestPolicy, rules.HasRoles = judge, true
	return rules, nil
}

// requestOptions have the built-in policy's own tests left out: they passed when this program was made.
func requestOptions(log *zap.Logger) policy.Options {
	return policy.Options{BaseTested: true, ThreadTime: threadTime, Log: log}
}

// requestModules are the built-in request policy and what the configuration adds to it.
func requestModules(settings config.Proxy) (policy.Modules, error) {
	added, err := addedModules(settings.RequestPolicy.Modules)
	if err != nil {
		return policy.Modules{}, err
	}
	return nodepolicy.Modules(added)
}

func addedModules(dir string) (map[string]string, error) {
	if dir == "" {
		return nil, nil
	}
	m, err := policy.LoadFS(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("request policy: modules in %s: %w", dir, err)
	}
	if len(m.Files) == 0 { // something that should refuse is not there: a volume that is late, a name that is wrong
		return nil, fmt.Errorf("request policy: modules in %s: there is no file that ends in .rego", dir)
	}
	return m.Files, nil
}
