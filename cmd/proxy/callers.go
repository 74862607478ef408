package main

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/cri"
	"github.com/pipeguard/pipeguard/internal/proxy/kubelet"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// naming identifies callers.
type naming struct {
	peers peer.Resolver
	run   func(context.Context) // until ctx is done
	close func() error
}

// newNaming identifies callers by their pods if the configuration has a container runtime, and else by their processes alone. node is
// this node's name in the cluster.
func newNaming(c config.Containers, node string, registry prometheus.Registerer, log *zap.Logger) (*naming, error) {
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
	if o.Accounts, err = accounts(c, node, registry); err != nil {
		return nil, errors.Join(err, runtime.Close())
	}
	return &naming{peers: peer.New(o), close: runtime.Close, run: func(ctx context.Context) {
		if err := runtime.Run(ctx); err != nil && ctx.Err() == nil {
			log.Error("the container runtime is not watched any more: callers are known by their processes alone", zap.Error(err))
		}
	}}, nil
}

// accounts are the sources of service accounts, in the order in which they are asked.
func accounts(c config.Containers, node string, registry prometheus.Registerer) (peer.Accounts, error) {
	var sources []peer.Accounts
	if k := c.Kubelet; k.URL != "" {
		client, err := kubelet.New(kubeletOptions(k, node))
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

func kubeletOptions(k config.Kubelet, node string) kubelet.Options {
	return kubelet.Options{
		Node: node, URL: k.URL, CAFile: k.CAFile, ServerName: k.ServerName, TokenFile: k.TokenFile, CertFile: k.CertFile, KeyFile: k.KeyFile, Timeout: k.Timeout,
	}
}
