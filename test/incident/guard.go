package main

import (
	"context"
	"embed"
	"fmt"
	"sync/atomic"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// The access lists of the story: the one that holds, and the one that somebody put in its place for two minutes.
const (
	usualList   = "rules/usual.yaml"
	mistakeList = "rules/mistake.yaml"
)

//go:embed rules
var lists embed.FS

// guard is the proxy's server with the host that its calls lead to.
type guard struct {
	server *proxy.Server
	pipes  *pipes
	apis   map[string]*apiserver.API // by pipe, as in disk-v1
	rules  atomic.Pointer[proxy.Rules]
}

// newGuard puts the parts together as the node proxy does. Block is called before each operation.
func newGuard(ctx context.Context, records audit.Writer, guarded token.Guard, block func(ctx context.Context, op string, args ...string)) (*guard, error) {
	roots, err := safepath.NewRoots(`C:\var\lib\kubelet`)
	if err != nil {
		return nil, err
	}
	host := fakehost.New(fakehost.Options{Roots: roots, Shares: []fakehost.Share{{Name: share, Username: shareUser, Password: sharePassword}}, Block: block})
	handlers, err := handler.New(handler.Hosts{Disk: host, Filesystem: host, Volume: host, SMB: host, ISCSI: host, System: host}, roots)
	if err != nil {
		return nil, err
	}
	apis, err := apiserver.Load(handlers.Groups()...)
	if err != nil {
		return nil, err
	}
	g := &guard{pipes: newPipes(), apis: map[string]*apiserver.API{}}
	for _, api := range apis {
		g.apis[api.GroupVersion().String()] = api
	}
	if err := g.use(ctx, usualList); err != nil {
		return nil, err
	}
	off, err := (*token.Verifier)(nil).Guard("", token.Off)
	if err != nil {
		return nil, err
	}
	g.server, err = proxy.New(proxy.Options{
		APIs: apis, Handle: handlers.Handle, Listen: g.pipes.Listen, Peers: names{}, Audit: records, Node: nodeName,
		Rules: func(string, string) *proxy.Rules { return g.rules.Load() },
		Tokens: func(pipe string) token.Guard {
			if pipe == "csi-proxy-smb-v1" {
				return guarded
			}
			return off
		},
	})
	return g, err
}

// use puts an access list in force, with the built-in request policy behind it.
func (g *guard) use(ctx context.Context, file string) error {
	text, err := lists.ReadFile(file)
	if err != nil {
		return err
	}
	settings, err := config.ParseProxy(file, text)
	if err != nil {
		return err
	}
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return err
	}
	list, err := settings.Policy(settings.Known(apis))
	if err != nil {
		return err
	}
	modules, err := nodepolicy.Modules(nil)
	if err != nil {
		return err
	}
	judge, err := requestpolicy.New(policy.Options{BaseTested: true})
	if err != nil {
		return err
	}
	if _, err := judge.Activate(ctx, modules); err != nil {
		return fmt.Errorf("request policy: %w", err)
	}
	rules := proxy.Listed(list)
	rules.RequestPolicy = judge
	g.rules.Store(rules)
	return nil
}
