package proxy

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// These tests try to get a yes by accident: from rules that change at the wrong moment, from a judge that does not work, and
// from names that come back.

// judgeFunc is a RequestPolicy.
type judgeFunc func() requestpolicy.Decision

func (f judgeFunc) Decide(context.Context, *apiserver.Call, *requestpolicy.Circumstances) requestpolicy.Decision {
	return f()
}

var (
	yes = judgeFunc(func() requestpolicy.Decision { return requestpolicy.Decision{Effect: audit.EffectAllow} })
	no  = judgeFunc(func() requestpolicy.Decision {
		return requestpolicy.Decision{Effect: audit.EffectDeny, Rule: "PN002", Reason: "not named", Revision: "sha256:00"}
	})
)

func listed(t *testing.T, spec acl.Spec, judge RequestPolicy) *Rules {
	t.Helper()
	list, err := acl.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	rules := Listed(list)
	rules.RequestPolicy = judge
	return rules
}

// Each set of rules refuses the call: one by its list, the other by its judge. Half of one and half of the other would allow it.
func TestRulesThatChangeAllTheTimeAreNeverMixed(t *testing.T) {
	sets := []*Rules{listed(t, allowDriver, no), listed(t, acl.Spec{}, yes)}
	var asked atomic.Uint64
	f := start(t, "unix", func(o *Options) {
		o.Rules = func(string, string) *Rules { return sets[asked.Add(1)%2] }
	})
	c := f.client(t, "filesystem-v1")
	const calls = 50
	for i := range calls {
		if i%3 == 0 { // or the count of questions for each call may keep to one of them
			asked.Add(1)
		}
		if err := mkdirs["v1"](within(t), c); status.Code(err) != codes.PermissionDenied {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	by := map[string]int{}
	for _, e := range f.log.await(t, calls, terminal) {
		by[e.Decision.Policy.Name]++
		if e.Decision.Policy.Name == "acl" && e.Decision.Policy.Revision != sets[1].Policy.Revision {
			t.Errorf("a list that allows is recorded as the one that denied: %+v", e.Decision)
		}
	}
	if by["acl"] == 0 || by["request"] == 0 || f.ran.Load() != 0 {
		t.Errorf("refused by %v, %d ran", by, f.ran.Load())
	}
}

func TestAJudgeThatDoesNotWorkAllowsNothing(t *testing.T) {
	empty, err := requestpolicy.New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		judge RequestPolicy
		code  codes.Code
		rule  string // of the record
	}{
		"it panics":                      {judgeFunc(func() requestpolicy.Decision { panic("secret") }), codes.Internal, ""},
		"it was never given a policy":    {empty, codes.PermissionDenied, requestpolicy.CodeNoPolicy},
		"it is there and is none":        {(*requestpolicy.Evaluator)(nil), codes.Internal, ""},
		"its answer is nothing":          {judgeFunc(func() (d requestpolicy.Decision) { return d }), codes.PermissionDenied, ""},
		"its answer is almost a yes":     {judgeFunc(func() requestpolicy.Decision { return requestpolicy.Decision{Effect: "allow "} }), codes.PermissionDenied, ""},
		"it allows and says that it did": {judgeFunc(func() requestpolicy.Decision { return requestpolicy.Decision{Rule: "allow", Reason: "allow"} }), codes.PermissionDenied, "allow"},
	} {
		t.Run(name, func(t *testing.T) {
			f := judgedBy(t, c.judge)
			err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1"))
			if status.Code(err) != c.code || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
			e := f.log.await(t, 1, terminal)[0]
			if e.IntentSeq != 0 || f.ran.Load() != 0 {
				t.Errorf("it ran: %+v", e)
			}
			if c.code == codes.PermissionDenied && (e.Decision.Effect != audit.EffectDeny || e.Decision.Rule != c.rule || e.Outcome.Result != audit.ResultDenied) {
				t.Errorf("recorded as %+v, %+v", e.Decision, e.Outcome)
			}
			if c.code == codes.Internal && e.Outcome.Result != audit.ResultPanic {
				t.Errorf("recorded as %+v", e.Outcome)
			}
		})
	}
	// Not to enforce is to let pass what was refused, not what nobody has looked at.
	f := judgedBy(t, judgeFunc(func() requestpolicy.Decision { panic("secret") }))
	if err := mkdirs["v2alpha1"](within(t), f.client(t, "filesystem-v2alpha1")); status.Code(err) != codes.Internal || f.ran.Load() != 0 {
		t.Errorf("a panic in mode LogOnly: %v, %d ran", err, f.ran.Load())
	}
}

// The caller dies while somebody thinks about its call, by itself or by what the judge was asked.
func TestACallerThatDiesWhileItIsJudgedIsRefused(t *testing.T) {
	for _, version := range []string{"v1", "v2alpha1"} { // the second is in mode LogOnly
		var f *fixture
		f = judgedBy(t, judgeFunc(func() requestpolicy.Decision {
			f.peers.set(func(p *fakePeers) { p.dead = errors.New("it has exited") })
			return requestpolicy.Decision{Effect: audit.EffectAllow}
		}))
		if err := mkdirs[version](within(t), f.client(t, "filesystem-"+version)); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", version, err)
		}
		if e := f.log.await(t, 1, terminal)[0]; e.Decision.Effect != audit.EffectDeny || e.Decision.Mode != "Enforce" || f.ran.Load() != 0 {
			t.Errorf("%s: recorded as %+v, %d ran", version, e.Decision, f.ran.Load())
		}
	}
}

// podRules allow one service account, and name no pod: those come and go.
var podRules = acl.Spec{Rules: []acl.Rule{{
	Name: "pod", Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir"},
	Callers: []acl.CallerPattern{{Namespace: "storage", ServiceAccount: "csi-node", Container: "driver"}},
}}}

// of is a caller in a container of the pod storage/csi-0.
func of(uid, account string) caller.Caller {
	return caller.Caller{
		Assurance: caller.AssurancePod, Process: driver.Process, User: caller.User{SID: "S-1-5-93-2-1"},
		Pod:       caller.Pod{Namespace: "storage", Name: "csi-0", UID: uid, ServiceAccount: account},
		Container: caller.Container{ID: "container-" + uid, Name: "driver"},
	}
}

// The process ids of both callers are the same here, as after a reuse: what was proven of one connection is that one's.
func TestAPodThatIsReplacedUnderItsNameIsNotTheOld(t *testing.T) {
	f := start(t, "unix", func(o *Options) {
		rules := listed(t, podRules, nil)
		o.Rules = func(string, string) *Rules { return rules }
	})
	f.peers.set(func(p *fakePeers) { p.identity = of("old", "csi-node") })
	old := f.client(t, "filesystem-v1")
	if err := mkdirs["v1"](within(t), old); err != nil {
		t.Fatal(err)
	}
	f.peers.set(func(p *fakePeers) { p.identity = of("new", "default") })
	later := f.client(t, "filesystem-v1")
	if err := mkdirs["v1"](within(t), later); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the new pod, by the old one's name: %v", err)
	}
	if err := mkdirs["v1"](within(t), old); err != nil {
		t.Errorf("the old one, while it lives: %v", err)
	}
	f.peers.set(func(p *fakePeers) { p.dead = errors.New("it has exited") })
	if err := mkdirs["v1"](within(t), old); status.Code(err) != codes.PermissionDenied {
		t.Errorf("the old one, after its container ended: %v", err)
	}
	var uids []string
	for _, e := range f.log.await(t, 4, terminal) {
		uids = append(uids, e.Who.Pod.UID)
	}
	if got := strings.Join(uids, " "); got != "old new old old" {
		t.Errorf("recorded as %s", got)
	}
}

// Whatever is missing of an identity makes no rule for pods hold.
func TestWhatIsNotProvenIsNoPod(t *testing.T) {
	for name, change := range map[string]func(*caller.Caller){
		"the runtime did not answer": func(i *caller.Caller) {
			i.Assurance, i.Pod, i.Container, i.Doubt = caller.AssuranceProcess, caller.Pod{}, caller.Container{}, "x"
		},
		"a pod that is only claimed":     func(i *caller.Caller) { i.Assurance = caller.AssuranceProcess },
		"a step that nobody knows":       func(i *caller.Caller) { i.Assurance = "POD" },
		"no step":                        func(i *caller.Caller) { i.Assurance = "" },
		"the kubelet did not answer":     func(i *caller.Caller) { i.Pod.ServiceAccount, i.Doubt = "", "x" },
		"a pod without a container":      func(i *caller.Caller) { i.Container = caller.Container{} },
		"a container without a pod":      func(i *caller.Caller) { i.Pod = caller.Pod{} },
		"an account in capitals":         func(i *caller.Caller) { i.Pod.ServiceAccount = "CSI-node" },
		"an account that is a pair":      func(i *caller.Caller) { i.Pod.Namespace, i.Pod.ServiceAccount = "", "storage/csi-node" },
		"a namespace with a line behind": func(i *caller.Caller) { i.Pod.Namespace = "storage\n" },
		"a star":                         func(i *caller.Caller) { i.Pod.Namespace, i.Pod.ServiceAccount = "*", "*" },
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, "memory", func(o *Options) {
				rules := listed(t, podRules, yes)
				o.Rules = func(string, string) *Rules { return rules }
			})
			who := of("a", "csi-node")
			change(&who)
			f.peers.set(func(p *fakePeers) { p.identity = who })
			if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); status.Code(err) != codes.PermissionDenied || f.ran.Load() != 0 {
				t.Errorf("%v, %d ran", err, f.ran.Load())
			}
		})
	}
}

// A client keeps its connection for ever. When the kubelet was away as it was opened, the denial is not for ever.
func TestACallerInDoubtIsNamedAnewAfterADenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "memory", func(o *Options) {
			rules := listed(t, podRules, yes)
			o.Rules = func(string, string) *Rules { return rules }
		})
		who := of("a", "")
		who.Doubt = "the pod's service account: the kubelet did not answer"
		f.peers.set(func(p *fakePeers) { p.identity = who })
		c := f.client(t, "filesystem-v1")
		if err := mkdirs["v1"](within(t), c); status.Code(err) != codes.PermissionDenied {
			t.Fatal(err)
		}
		f.peers.set(func(p *fakePeers) { p.identity = of("a", "csi-node") })
		time.Sleep(2 * lingering)
		if err := mkdirs["v1"](within(t), c); err != nil {
			t.Errorf("the same client, once the kubelet answers: %v", err)
		}
		if e := f.log.await(t, 1, connection)[0]; e.Outcome.Result != audit.ResultIdle || !strings.Contains(e.Outcome.Error, "could be found out") {
			t.Errorf("recorded as %+v", e.Outcome)
		}
	})
}

// One who is denied without a doubt, or has a request in progress, keeps the connection.
func TestADenialAloneEndsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, doubt := range map[string]string{"no doubt": "", "a request in progress": "x"} {
			f := start(t, "memory", func(o *Options) {
				rules := listed(t, podRules, yes)
				o.Rules = func(string, string) *Rules { return rules }
			})
			who := of("a", "default")
			who.Doubt = doubt
			f.peers.set(func(p *fakePeers) { p.identity = who })
			c := f.client(t, "filesystem-v1")
			if err := mkdirs["v1"](within(t), c); status.Code(err) != codes.PermissionDenied {
				t.Fatal(err)
			}
			if doubt != "" {
				for _, p := range f.server.pipes {
					p.conns.mu.Lock()
					for open := range p.conns.conns {
						open.busy.Add(1)
					}
					p.conns.mu.Unlock()
				}
			}
			time.Sleep(2 * lingering)
			if n := len(f.log.all()); n != 1 {
				t.Errorf("%s: %d records", name, n)
			}
			_, _ = c.Close(), f.stop()
		}
	})
}
