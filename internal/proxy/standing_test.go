package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// byToken lets pods of one namespace make directories if their calls have a token.
var byToken = acl.Spec{Rules: []acl.Rule{{
	Name: "driver", Pipes: []string{"filesystem-v1"}, Operations: []string{"Mkdir"},
	Callers: []acl.CallerPattern{{Namespace: "storage", Token: true}},
	Limits:  access.Limits{Connections: 3},
}}}

// A rule may name a caller by what its calls have yet to bring.
func TestACallerThatARuleNamesWithATokenIsNoStranger(t *testing.T) {
	onHost := driver
	off, err := (*token.Verifier)(nil).Guard("filesystem-v1", token.Off)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		guard    *token.Guard
		who      caller.Caller
		stranger bool
	}{
		"in the pod":                          {&token.Guard{}, container("a"), false},
		"in another namespace":                {&token.Guard{}, outsider("a"), true},
		"in no pod, whose token is of no use": {&token.Guard{}, onHost, true},
		"on a pipe that takes no tokens":      {&off, container("a"), true},
		"where nothing verifies tokens":       {nil, container("a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, "memory", func(o *Options) {
				o.Rules = func(string, string) *Rules { return listed(t, byToken, nil) }
				if c.guard != nil {
					o.Tokens = func(string) token.Guard { return *c.guard }
				}
			})
			for _, p := range f.server.pipes {
				if p.name != "csi-proxy-filesystem-v1" {
					continue
				}
				if got := p.isStranger(p.now(), c.who); got != c.stranger {
					t.Errorf("stranger: %v", got)
				}
				if n := p.now().List.Connections(p.gv.Group, p.gv.Version, p.couldBe(c.who)); (n == 3) == c.stranger {
					t.Errorf("the rule lets it hold %d connections", n)
				}
			}
		})
	}
}

// Such a caller keeps its connections, also where its tokens are refused, as they are while keys change.
func TestACallerWhoseTokensAreRefusedKeepsItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "memory", func(o *Options) {
			o.Rules = func(string, string) *Rules { return listed(t, byToken, nil) }
			o.Tokens = func(string) token.Guard { return token.Guard{} }
		})
		strict(f, 5)
		f.peers.set(func(p *fakePeers) { p.identity = container("a") })
		c := f.client(t, "filesystem-v1")
		for range 40 {
			if mkdirs["v1"](within(t), c) == nil {
				t.Fatal("a call without a token was allowed")
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(3 * strangerIdle)
		if err := mkdirs["v1"](within(t), c); err == nil {
			t.Fatal("a call without a token was allowed")
		}
		if n := f.metric(t, "pipeguard_connections_accepted_total"); n != 1 {
			t.Errorf("it needed %v connections", n)
		}
		_ = c.Close()
		if err := f.stop(); err != nil {
			t.Error(err)
		}
	})
}
