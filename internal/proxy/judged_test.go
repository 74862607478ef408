package proxy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hub "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// fakePolicy says the same of every call, and keeps what it was asked.
type fakePolicy struct {
	decision requestpolicy.Decision

	mu       sync.Mutex // guards subjects
	subjects []requestpolicy.Circumstances
}

func (f *fakePolicy) Decide(_ context.Context, _ *apiserver.Call, s *requestpolicy.Circumstances) requestpolicy.Decision {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.subjects = append(f.subjects, *s)
	return f.decision
}

func (f *fakePolicy) asked() []requestpolicy.Circumstances {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.subjects
}

func judgedBy(t *testing.T, judge RequestPolicy) *fixture {
	t.Helper()
	list, err := acl.New(allowDriver)
	if err != nil {
		t.Fatal(err)
	}
	rules := Listed(list)
	rules.RequestPolicy = judge
	return start(t, "memory", func(o *Options) { o.Rules = func(string, string) *Rules { return rules } })
}

func TestWhatTheListAllowsIsJudged(t *testing.T) {
	refused := requestpolicy.Decision{Effect: audit.EffectDeny, Rule: "PN002", Reason: "not named", Revision: "sha256:00"}
	broken := requestpolicy.Decision{Effect: audit.EffectDeny, Rule: requestpolicy.CodeInternal, Reason: "gave no decision", Err: errors.New("secret")}
	for name, c := range map[string]struct {
		version  string // v2alpha1 is LogOnly
		rmdir    bool   // which the list denies
		decision requestpolicy.Decision
		asked    bool
		code     codes.Code
		want     audit.Decision
	}{
		"allowed":                          {"v1", false, requestpolicy.Decision{Effect: audit.EffectAllow}, true, codes.OK, audit.Decision{Effect: audit.EffectAllow, Rule: "driver", Mode: "Enforce", Policy: &audit.Policy{Name: "acl"}}},
		"refused":                          {"v1", false, refused, true, codes.PermissionDenied, audit.Decision{Effect: audit.EffectDeny, Rule: "PN002", Reason: "not named", Mode: "Enforce", Policy: &audit.Policy{Name: "request"}}},
		"refused where that is recorded":   {"v2alpha1", false, refused, true, codes.OK, audit.Decision{Effect: audit.EffectDeny, Rule: "PN002", Reason: "not named", Mode: "LogOnly", Policy: &audit.Policy{Name: "request"}}},
		"not decided":                      {"v1", false, broken, true, codes.PermissionDenied, audit.Decision{Effect: audit.EffectDeny, Rule: requestpolicy.CodeInternal, Mode: "Enforce", Policy: &audit.Policy{Name: "request"}}},
		"no time to decide":                {"v1", false, requestpolicy.Decision{Effect: audit.EffectDeny, Rule: requestpolicy.CodeTimeout, Reason: "time"}, true, codes.Unavailable, audit.Decision{Effect: audit.EffectDeny, Rule: requestpolicy.CodeTimeout, Mode: "Enforce", Policy: &audit.Policy{Name: "request"}}},
		"nothing said":                     {"v1", false, requestpolicy.Decision{}, true, codes.PermissionDenied, audit.Decision{Effect: audit.EffectDeny, Mode: "Enforce", Policy: &audit.Policy{Name: "request"}}},
		"an effect that there is not":      {"v1", false, requestpolicy.Decision{Effect: "Allow"}, true, codes.PermissionDenied, audit.Decision{Effect: audit.EffectDeny, Mode: "Enforce", Policy: &audit.Policy{Name: "request"}}},
		"denied by the list":               {"v1", true, requestpolicy.Decision{Effect: audit.EffectAllow}, false, codes.PermissionDenied, audit.Decision{Effect: audit.EffectDeny, Mode: "Enforce", Policy: &audit.Policy{Name: "acl"}}},
		"denied where that is recorded":    {"v2alpha1", true, requestpolicy.Decision{Effect: audit.EffectAllow}, false, codes.OK, audit.Decision{Effect: audit.EffectDeny, Mode: "LogOnly", Policy: &audit.Policy{Name: "acl"}}},
		"denied and would be refused, too": {"v2alpha1", true, refused, false, codes.OK, audit.Decision{Effect: audit.EffectDeny, Mode: "LogOnly", Policy: &audit.Policy{Name: "acl"}}},
	} {
		t.Run(name, func(t *testing.T) {
			judge := &fakePolicy{decision: c.decision}
			f := judgedBy(t, judge)
			conn := f.client(t, "filesystem-"+c.version)
			var err error
			switch {
			case !c.rmdir:
				err = mkdirs[c.version](within(t), conn)
			default:
				err = conn.Invoke(within(t), "/"+c.version+".Filesystem/Rmdir", &hub.RmdirRequest{Path: `C:\a`}, &hub.RmdirResponse{})
			}
			if status.Code(err) != c.code {
				t.Fatalf("%v, want %v", err, c.code)
			}
			if ran := f.ran.Load() == 1; ran != (c.code == codes.OK) {
				t.Errorf("ran: %t", ran)
			}
			if err != nil && (!strings.Contains(err.Error(), c.want.Rule) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("the caller is told %v", err)
			}
			e := f.log.await(t, 1, terminal)[0]
			d := e.Decision
			if d == nil || d.Effect != c.want.Effect || d.Rule != c.want.Rule || d.Mode != c.want.Mode || d.Policy.Name != c.want.Policy.Name ||
				c.want.Reason != "" && d.Reason != c.want.Reason {
				t.Errorf("record: %+v, policy %+v", d, d.Policy)
			}
			asked := judge.asked()
			if len(asked) > 0 != c.asked {
				t.Errorf("asked %d times", len(asked))
			}
			for _, s := range asked {
				if s.Pipe != "csi-proxy-filesystem-"+c.version || s.Node != "node-1" || s.Now.IsZero() || s.Shown == nil {
					t.Errorf("subject %+v", s)
				}
			}
			if c.want.Policy.Name == "request" && f.becomes(t, "pipeguard_request_policy_denials_total", 1) != 1 {
				t.Error("the denial is not counted")
			}
		})
	}
}

func TestACallerIsShownOnceForAConnection(t *testing.T) {
	judge := &fakePolicy{decision: requestpolicy.Decision{Effect: audit.EffectAllow}}
	f := judgedBy(t, judge)
	for range 2 {
		conn := f.client(t, "filesystem-v1")
		for range 2 {
			if err := mkdirs["v1"](within(t), conn); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := judge.asked()
	if len(s) != 4 || s[0].Shown != s[1].Shown || s[2].Shown != s[3].Shown || s[1].Shown == s[2].Shown {
		t.Errorf("callers are made %v", s)
	}
}

// namingDriver is a list that names the driver for Mkdir.
func namingDriver(change func(*acl.Rule)) acl.Spec {
	rule := allowDriver.Rules[0]
	rule.Callers = []acl.CallerPattern{{User: "S-1-5-18", Exe: `C:\driver\node.exe`}}
	if change != nil {
		change(&rule)
	}
	return acl.Spec{Rules: []acl.Rule{rule}}
}

func TestThePolicyIsToldWhetherTheListNamesTheCaller(t *testing.T) {
	inPod := of("u", "csi-node")
	account := []acl.CallerPattern{{ServiceAccount: "storage/csi-node"}}
	onHost, inDoubt, ofUnknown := driver, driver, of("u", "")
	onHost.IsHost, inDoubt.Doubt, ofUnknown.Doubt = true, "whether it is in a container: the runtime does not answer", "the pod's service account: it is not known"
	for name, c := range map[string]struct {
		caller caller.Caller
		list   acl.Spec
		want   bool
	}{
		"a rule spells it out": {driver, namingDriver(nil), true},
		"a rule of a pod":      {inPod, namingDriver(func(r *acl.Rule) { r.Callers = account }), true},
		"known to be in none":  {onHost, namingDriver(nil), true},
		"in doubt":             {inDoubt, namingDriver(nil), false},
		"an account in doubt":  {ofUnknown, namingDriver(func(r *acl.Rule) { r.Callers = []acl.CallerPattern{{Namespace: "storage", Container: "driver"}} }), true},
		"every operation":      {driver, namingDriver(func(r *acl.Rule) { r.Operations = []string{"*"} }), false},
		"every program":        {driver, allowDriver, false},
		"every group":          {inPod, namingDriver(func(r *acl.Rule) { r.Callers, r.Pipes = account, []string{"*"} }), false},
		"a rule behind one of all": {driver, acl.Spec{Rules: append(
			[]acl.Rule{{Name: "all", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}}}, namingDriver(nil).Rules...,
		)}, true},
		"a rule for other paths, behind one of all": {driver, acl.Spec{Rules: append(
			[]acl.Rule{{Name: "all", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}}},
			namingDriver(func(r *acl.Rule) { r.Paths = []string{`C:\elsewhere`} }).Rules...,
		)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			judge := &fakePolicy{decision: requestpolicy.Decision{Effect: audit.EffectAllow}}
			rules := listed(t, c.list, judge)
			f := start(t, "memory", func(o *Options) { o.Rules = func(string, string) *Rules { return rules } })
			f.peers.set(func(p *fakePeers) { p.identity = c.caller })
			if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); err != nil {
				t.Fatal(err)
			}
			if asked := judge.asked(); len(asked) != 1 || asked[0].Named != c.want {
				t.Errorf("%+v", asked)
			}
			if w := f.log.await(t, 1, terminal)[0].Who; w.Doubt != c.caller.Doubt || w.Host != c.caller.IsHost { // who reads the record asks the list alike
				t.Errorf("recorded as %+v", w)
			}
		})
	}
}

// A role of the cluster allows what the list denies, and names nobody for it.
func TestARoleNamesNobody(t *testing.T) {
	judge := &fakePolicy{decision: requestpolicy.Decision{Effect: audit.EffectAllow}}
	rules := listed(t, namingDriver(func(r *acl.Rule) {
		r.Callers, r.Paths = []acl.CallerPattern{{ServiceAccount: "storage/csi-node"}}, []string{`C:\elsewhere`}
	}), judge)
	rules.HasRoles = true
	roles := &fakeRoles{account: "storage/csi-node", pipe: "filesystem-v1", method: "Mkdir"}
	f := start(t, "memory", func(o *Options) {
		o.Rules, o.Roles = func(string, string) *Rules { return rules }, func(string) Roles { return roles }
	})
	f.peers.set(func(p *fakePeers) { p.identity = of("u", "csi-node") })
	if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); err != nil {
		t.Fatal(err)
	}
	if asked := judge.asked(); len(asked) != 1 || asked[0].Named {
		t.Errorf("%+v", asked)
	}
}
