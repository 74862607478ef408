package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/internal/proxy/watch"
)

// pipes are the pipes that this process opens, each with its own descriptor, and watches.
type pipes struct {
	*watch.Watch
	options  pipe.Options
	accounts map[string][]string // by pipe, beside those of the descriptor
}

func (p *proxyProgram) newPipes(registry prometheus.Registerer) (*pipes, error) {
	known, err := knownAPIs(p.settings)
	if err != nil {
		return nil, err
	}
	o := pipe.Options{SocketDir: p.flags.socketDir, SDDL: p.flags.sddl}
	opened := &pipes{options: o}
	if opened.accounts, err = p.settings.Accounts(known); err != nil {
		return nil, err
	}
	if len(opened.accounts) > 0 && p.flags.socketDir != "" {
		p.log.Warn("pipes: has no effect here: a socket is its own user's, and pipes of Windows alone have descriptors")
	}
	opened.Watch, err = watch.New(watch.Search{Pipes: o, Candidates: candidates(), Own: isBehind(p.settings)}, registry, p.log)
	return opened, err
}

// candidates are the names of all pipes of CSI Proxy.
func candidates() (names []string) {
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return nil // the start has failed on it already
	}
	for _, api := range apis {
		names = append(names, api.GroupVersion().Pipe())
	}
	return names
}

// isBehind says which pipes of other names this proxy passes calls on to. Another process serves them on purpose.
func isBehind(settings config.Proxy) func(name string) bool {
	before, after, upstream := strings.Cut(strings.ToLower(settings.Upstream.Pipe), "*")
	to := map[string]bool{}
	for _, f := range settings.Forward {
		to[strings.ToLower(f.To)] = true
	}
	return func(name string) bool {
		name = strings.ToLower(name)
		return to[name] || upstream && len(name) > len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
	}
}

// listen opens pipes and calls opened after the last of all.
func (p *pipes) listen(all int, opened func()) func(name string) (net.Listener, error) {
	var count atomic.Int64
	return func(name string) (net.Listener, error) {
		o := p.options
		o.Accounts = p.accounts[name]
		l, err := pipe.Listen(name, o)
		if err != nil {
			return nil, because(exitPipe, err)
		}
		p.Add(name, l.Verify)
		if count.Add(1) == int64(all) {
			p.Begin()
			opened()
		}
		return accepting{l}, nil
	}
}

// now are the names of the pipes that clients reach here: none before all are open, and while the proxy stops.
func (p *pipes) now(state *readiness) []string {
	if !state.open.Load() {
		return []string{}
	}
	return p.Served()
}

// accepting gives a pipe whose name turns out to be taken the exit code of pipes.
type accepting struct{ net.Listener }

// Accept implements net.Listener.
func (a accepting) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if errors.Is(err, pipe.ErrTaken) { // other errors keep their type, by which gRPC knows those that pass
		err = because(exitPipe, err)
	}
	return conn, err
}

// run watches the pipes until serving or background is done: pipes that are being closed belong to no process.
func (p *pipes) run(serving, background context.Context) {
	ctx, cancel := context.WithCancel(serving)
	defer cancel()
	defer context.AfterFunc(background, cancel)()
	p.Run(ctx)
}

// logPipes names the served pipes in one line: csi-proxy.exe might serve others.
func logPipes(log *zap.Logger, host string, apis []*apiserver.API) {
	var names []string
	for _, api := range apis {
		names = append(names, api.GroupVersion().String())
	}
	log.Info("pipes to serve; no other csi-proxy pipe is", zap.String(logkeys.Name, host), zap.Strings(logkeys.Pipe, names))
}
