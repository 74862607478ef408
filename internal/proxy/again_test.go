package proxy

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// Three calls wait for a fourth on the same path. Before it ends, all that allowed them ends.
func TestWhatWaitedIsDecidedByWhatHoldsWhenItBegins(t *testing.T) {
	inPod := of("a", "csi-node")
	role := acl.Spec{Rules: []acl.Rule{{
		Name: "other", Pipes: []string{"filesystem-*"}, Operations: []string{"Rmdir"}, Callers: []acl.CallerPattern{{User: "S-1-5-93-2-1"}},
	}}}
	for name, c := range map[string]struct {
		caller        caller.Caller
		before, after func(*testing.T) *Rules
		change        func(f *fixture, roles *fakeRoles)
		policy        string // that the records name
	}{
		"the access list names somebody else": {
			before: func(t *testing.T) *Rules { return listed(t, allowDriver, nil) },
			after:  func(t *testing.T) *Rules { return listed(t, acl.Spec{}, nil) }, policy: "acl",
		},
		"the list allows it for other paths": {
			before: func(t *testing.T) *Rules { return listed(t, allowDriver, nil) },
			after: func(t *testing.T) *Rules {
				spec := acl.Spec{Rules: []acl.Rule{allowDriver.Rules[0]}}
				spec.Rules[0].Paths = []string{`C:\elsewhere`}
				return listed(t, spec, nil)
			}, policy: "acl",
		},
		"the request policy refuses": {
			before: func(t *testing.T) *Rules { return listed(t, allowDriver, yes) },
			after:  func(t *testing.T) *Rules { return listed(t, allowDriver, no) }, policy: "request",
		},
		"there are no rules any more, as when a bundle has ended": {
			before: func(t *testing.T) *Rules { return listed(t, allowDriver, nil) },
			after:  func(*testing.T) *Rules { return nil }, policy: "acl",
		},
		"the role is taken back": {
			caller: inPod,
			before: func(t *testing.T) *Rules { r := listed(t, role, nil); r.HasRoles = true; return r },
			change: func(_ *fixture, roles *fakeRoles) { roles.err = errors.New("taken back") }, policy: "acl",
		},
		"tokens are believed no more": {
			before: func(t *testing.T) *Rules { return listed(t, allowDriver, nil) },
			change: func(f *fixture, _ *fakeRoles) {
				for _, p := range f.server.pipes {
					*p.tokens = token.Guard{} // refuses all
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Pointer[Rules]
			now.Store(c.before(t))
			roles := &fakeRoles{account: "storage/csi-node", pipe: "filesystem-v1", method: "Mkdir"}
			f := start(t, "unix", func(o *Options) {
				o.Rules = func(string, string) *Rules { return now.Load() }
				o.Roles = func(string) Roles { return roles }
				o.Tokens = func(pipe string) token.Guard {
					off, err := (*token.Verifier)(nil).Guard(pipe, token.Off)
					if err != nil {
						t.Error(err)
					}
					return off
				}
			})
			if c.caller.HasPod() {
				f.peers.set(func(p *fakePeers) { p.identity = c.caller })
			}
			g := newTurnstile(f)
			client := f.client(t, "filesystem-v1")
			ended := make(chan error, 4)
			call := func() { ended <- mkdirs["v1"](within(t), client) }
			go call()
			<-g.began
			for range 3 {
				go call()
			}
			f.waiting(t, 3)
			if c.change != nil {
				c.change(f, roles)
			} else {
				now.Store(c.after(t))
			}
			close(g.door(`C:\a`))
			got := map[codes.Code]int{}
			for range 4 {
				got[status.Code(<-ended)]++
			}
			if got[codes.OK] != 1 || f.ran.Load() != 1 {
				t.Errorf("answers %v, %d operations ran; want only the first", got, f.ran.Load())
			}
			denied := 0
			for _, e := range f.log.await(t, 4, terminal) {
				if e.Outcome.Result == audit.ResultOK {
					continue
				}
				denied++
				if e.Outcome.Result != audit.ResultDenied || e.Decision.Effect != audit.EffectDeny || e.IntentSeq != 0 {
					t.Errorf("recorded as %+v, %+v", e.Decision, e.Outcome)
				}
				if c.policy != "" && e.Decision.Policy.Name != c.policy {
					t.Errorf("the record shows another decision than the one that counted: %+v", e.Decision)
				}
			}
			if denied != 3 {
				t.Errorf("%d records of denials", denied)
			}
		})
	}
}

// oneWaits makes two calls on one path, of which the second waits for the first while the rules change. Both are allowed.
func oneWaits(t *testing.T, before, after *Rules) *fixture {
	t.Helper()
	var now atomic.Pointer[Rules]
	now.Store(before)
	f := start(t, "unix", func(o *Options) { o.Rules = func(string, string) *Rules { return now.Load() } })
	g := newTurnstile(f)
	client := f.client(t, "filesystem-v1")
	ended := make(chan error, 2)
	for i := range 2 {
		go func() { ended <- mkdirs["v1"](within(t), client) }()
		if i == 0 {
			<-g.began
		}
	}
	f.waiting(t, 1)
	now.Store(after)
	close(g.door(`C:\a`))
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	return f
}

// What a rule permits beside the operation is that of the rule that counts.
func TestPermitsEndWhileACallWaits(t *testing.T) {
	permitting := acl.Spec{Rules: []acl.Rule{allowDriver.Rules[0]}}
	permitting.Rules[0].Permits = []string{access.Reformat, access.SystemDisk}
	f := oneWaits(t, listed(t, permitting, nil), listed(t, allowDriver, nil))
	permits := map[int]int{}
	for _, e := range f.log.await(t, 2, terminal) {
		permits[len(e.Decision.Permits)]++
	}
	if permits[2] != 1 || permits[0] != 1 {
		t.Errorf("permits of the two calls: %v", permits)
	}
}

// A subject's end is a time: the request policy is asked as of now, and not as of the call's arrival.
func TestTheRequestPolicyIsAskedAgainAsOfNow(t *testing.T) {
	judge := &fakePolicy{decision: requestpolicy.Decision{Effect: audit.EffectAllow}}
	f := judgedBy(t, judge)
	g := newTurnstile(f)
	client := f.client(t, "filesystem-v1")
	ended := make(chan error, 2)
	go func() { ended <- mkdirs["v1"](within(t), client) }()
	<-g.began
	go func() { ended <- mkdirs["v1"](within(t), client) }()
	f.waiting(t, 1)
	released := time.Now()
	close(g.door(`C:\a`))
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	asked := judge.asked()
	if len(asked) != 3 || asked[2].Now.Before(released) {
		t.Errorf("asked %d times, the last as of %v before the call could begin", len(asked), released.Sub(asked[len(asked)-1].Now))
	}
}

// Who is named is said by the list that decides: one that names the caller no more, and still allows the call, counts when it begins.
func TestANameEndsWhileACallWaits(t *testing.T) {
	judge := &fakePolicy{decision: requestpolicy.Decision{Effect: audit.EffectAllow}}
	oneWaits(t, listed(t, namingDriver(nil), judge), listed(t, allowDriver, judge))
	if asked := judge.asked(); len(asked) != 3 || !asked[0].Named || !asked[1].Named || asked[2].Named {
		t.Errorf("%+v", asked)
	}
}
