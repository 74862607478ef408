package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/forward"
)

// passOn adds to a server's options the pipes whose calls go to other servers: the pipes of forward, and with backend upstream
// those of CSI Proxy, for which it sets APIs, Handle and Pass. It returns a function that closes the connections to them, and adds
// to state whether the upstream answers. A server behind one forwarded pipe may be away while the node is ready.
func (p *proxyProgram) passOn(backend string, o *proxy.Options, state *readiness) (closeLinks func() error, err error) {
	options := forward.Options{SocketDir: p.flags.socketDir, Log: p.log}
	var ends []func() error
	closeLinks = func() error {
		var errs []error
		for _, end := range ends {
			errs = append(errs, end())
		}
		return errors.Join(errs...)
	}
	for i, f := range p.settings.Forward {
		link, err := forward.NewLink(forward.Target{Pipe: f.To, Exe: f.Exe}, options)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("forward[%d]: %w", i, err), closeLinks())
		}
		ends = append(ends, link.Close)
		p.warnWithoutExe(f.To, f.Exe)
		o.Forward = append(o.Forward, proxy.Forwarded{Pipe: f.Pipe, Serve: link.Serve})
	}
	if backend != hostUpstream {
		return closeLinks, nil
	}
	upstream, err := p.upstream(options)
	if err != nil {
		return nil, errors.Join(err, closeLinks())
	}
	ends = append(ends, upstream.Close)
	if o.APIs, err = apiserver.Load(upstream.Groups()...); err != nil {
		return nil, errors.Join(err, closeLinks())
	}
	o.Handle, o.Pass = upstream.Handle, upstream.Pass
	state.checks = append(state.checks, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
		defer cancel()
		return upstream.Ready(ctx)
	})
	return closeLinks, nil
}

// readyWithin is how long a health check waits for an upstream that has been left alone until then.
const readyWithin = 2 * time.Second

func (p *proxyProgram) upstream(options forward.Options) (*forward.Upstream, error) {
	u := p.settings.Upstream
	if u.Pipe == "" { // --host upstream without the configuration's part of it
		return nil, fmt.Errorf("backend %s: upstream.pipe is not set in the configuration", hostUpstream)
	}
	roots, err := p.flags.roots()
	if err != nil {
		return nil, err
	}
	p.warnWithoutExe(u.Pipe, u.Exe)
	return forward.NewUpstream(forward.Pattern(u), roots, options)
}

func (p *proxyProgram) warnWithoutExe(pipe, exe string) {
	if exe == "" {
		p.log.Warn("any process that created this pipe is trusted: no exe is set for it", zap.String(logkeys.Pipe, pipe))
	}
}
