package acl

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// straightforward is what a decision means where no rule names the caller: the first rule, in their order, all of whose parts cover the call.
func straightforward(rules []access.Rule, c access.Call) (rule string) {
	for i := range rules {
		if rules[i].Against(c).By >= 0 {
			return rules[i].Name
		}
	}
	return ""
}

// isFor says whether a rule is for the pipe and the caller, whatever it allows.
func isFor(r access.Rule, c access.Call) bool {
	any := access.Rule{Pipes: r.Pipes, Callers: r.Callers, Operations: []string{"Mkdir", "/a.B/C"}}
	c.Operation = "Mkdir"
	if access.IsFullName(c.Group) {
		c.Operation = "/a.B/C"
	}
	return any.Against(c).By >= 0
}

// straightforwardlyNaming is what Decision.Named means, and which rule then decides: the first all of whose parts cover the request, and one of whose callers that
// cover it is a name, beside the operation and the group.
func straightforwardlyNaming(p *Policy, r access.Call) (rule string) {
	for i, written := range p.spec.Rules {
		if straightforward(p.rules[i:i+1], r) == "" || !slices.Contains(written.Operations, r.Operation) || strings.HasPrefix(r.Operation, "/") || r.Operation == "*" {
			continue
		}
		isGroup := slices.ContainsFunc(written.Pipes, func(text string) bool {
			return text == r.Group+"-"+r.Version || text == r.Group+"-*"
		})
		for j, c := range written.Callers {
			alone := access.Rule{Pipes: p.rules[i].Pipes, Operations: p.rules[i].Operations, Callers: p.rules[i].Callers[j : j+1]}
			if !isGroup || alone.Against(r).By < 0 {
				continue
			}
			if c.Namespace != "" && (c.ServiceAccount != "" || c.Container != "") {
				return written.Name
			}
			rest := c
			rest.User, rest.Exe, rest.Assurance, rest.Token = "", "", "", false
			if rest == (CallerPattern{}) && c.User != "" && c.Exe != "" && !strings.HasSuffix(c.Exe, "*") && isOnNode(r.Caller) {
				return written.Name
			}
		}
	}
	return ""
}

func isOnNode(c caller.Caller) bool {
	return c == caller.Caller{Assurance: "process", User: caller.User{SID: c.User.SID}, Process: caller.Process{Exe: c.Process.Exe}, Token: c.Token}
}

// words are few, so that rules and requests meet.
var words = struct {
	pipes, operations, users, exes, exePatterns, namespaces, accounts, containers, images, imagePatterns, paths, assurances, groups, versions []string
	shares, sharePatterns, services                                                                                                           []string
}{
	pipes:         []string{"*", "*-v1", "disk-*", "filesystem-v1", "filesystem-*", "volume-v1", "system-v1", "smb-*", other},
	operations:    []string{"*", "Mkdir", "CreateSymlink", "MountVolume", "Rescan", "StopService", "NewSmbGlobalMapping", "/a.B/C", "/a.B/*"},
	users:         []string{"", "S-1-5-18", "S-1-5-93-2-1", "s-1-5-18"},
	exes:          []string{"", `C:\d\a.exe`, `c:\D\sub\b.exe`, `C:\dx\a.exe`, "/opt/a", `C:\d`},
	exePatterns:   []string{"", "", `C:\d\*`, `C:\d\a.exe`, `C:\d\sub\*`, "/opt/*"},
	namespaces:    []string{"", "kube-system", "team-a", "team-ab"},
	accounts:      []string{"", "", "node", "other"},
	containers:    []string{"", "", "driver", "sidecar"},
	images:        []string{"", "r.io/team-a/x:v1", "r.io/team-ab/x:v1", "r.io/team-a/x:v1@" + digest, "r.io/evil@" + digest, digest, "r.io/team-a/x:v1.2", "r.io/team-a/x:v1.2@" + digest},
	imagePatterns: []string{"", "", "", "r.io/team-a/*", "r.io/team-a/x:v1", "r.io/team-a/x@" + digest, digest, "r.io/team-a/x:*", "r.io/team-a/x:v1.*", "r.io/team-a/x:v1.2@" + digest},
	paths:         []string{`C:\k`, `C:\k\plugins`, `C:\k\plugins\a`, `c:\K\plugins\A\b`, `C:\kx`, `C:\`, "", `C:\k\..\x`, `D:\k`},
	assurances:    []string{"pod", "pod", "pod", "process", "sid", "none"},
	groups:        []string{"filesystem", "disk", "volume", "system", "smb", other, `\\.\PIPE\front`, ""},
	versions:      []string{"v1", "v1beta1", ""},
	shares:        []string{`\\files.example\data`, `\\FILES.example\Data2`, `\\a.files.example\data`, `\\example\data`, `\\files.example`, ""},
	sharePatterns: []string{`\\files.example\data`, `\\files.example\*`, `\\*.example\data*`, `\\*.files.example\*`},
	services:      []string{"MSiSCSI", "msiscsi", "RpcSs"},
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) } //nolint:gosec // the same each time

// numberOf is n of rules[n].
func numberOf(field string) (n int) {
	_, _ = fmt.Sscanf(field, "rules[%d]", &n)
	return n
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }

func randomSpec(r *rand.Rand) Spec {
	var s Spec
	crowded := r.IntN(2) == 0 // most rules name one of two callers, so that these are told apart by more than their names
	for i := range 1 + r.IntN(60) {
		rule := Rule{Name: fmt.Sprint("r", i)}
		for range 1 + r.IntN(3) {
			rule.Pipes = append(rule.Pipes, pick(r, words.pipes))
			rule.Operations = append(rule.Operations, pick(r, words.operations))
		}
		for range 1 + r.IntN(2) {
			c := CallerPattern{
				User: pick(r, words.users), Exe: pick(r, words.exePatterns), Namespace: pick(r, words.namespaces),
				Container: pick(r, words.containers), Image: pick(r, words.imagePatterns), Token: r.IntN(8) == 0,
			}
			if c.Namespace != "" {
				c.ServiceAccount = pick(r, words.accounts)
			}
			if r.IntN(6) == 0 {
				yes := r.IntN(2) == 0
				c.HostProcess = &yes
			}
			if crowded && r.IntN(10) > 0 {
				c = CallerPattern{Namespace: pick(r, words.namespaces[1:3])}
			}
			if _, faults := parseCaller(c); len(faults) == 0 {
				rule.Callers = append(rule.Callers, c)
			}
		}
		if len(rule.Callers) == 0 {
			rule.Callers = []CallerPattern{{Namespace: "kube-system"}}
		}
		for r.IntN(3) == 0 {
			rule.Paths = append(rule.Paths, pick(r, words.paths[:5]))
		}
		for r.IntN(3) == 0 {
			rule.Shares = append(rule.Shares, pick(r, words.sharePatterns))
		}
		for r.IntN(3) == 0 {
			rule.Services = append(rule.Services, pick(r, words.services))
		}
		if r.IntN(3) == 0 {
			rule.Limits.Connections = 1 + r.IntN(9)
		}
		s.Rules = append(s.Rules, rule)
	}
	return s
}

var doubts = []string{"", "", "", "the runtime does not answer"}

func randomRequest(r *rand.Rand) access.Call {
	q := access.Call{
		Group: pick(r, words.groups), Version: pick(r, words.versions), Operation: pick(r, words.operations[1:8]),
		Caller: caller.Caller{
			Assurance: caller.Assurance(pick(r, words.assurances)), User: caller.User{SID: pick(r, words.users)}, Process: caller.Process{Exe: pick(r, words.exes)},
			Pod:       caller.Pod{Namespace: pick(r, words.namespaces), ServiceAccount: pick(r, words.accounts)},
			Container: caller.Container{Name: pick(r, words.containers), Image: pick(r, words.images), HostProcess: r.IntN(2) == 0},
			Token:     r.IntN(2) == 0, Doubt: doubts[r.IntN(4)],
		},
	}
	for range r.IntN(3) {
		q.Paths = append(q.Paths, pick(r, words.paths))
	}
	for range r.IntN(3) {
		q.Shares, q.Services = append(q.Shares, pick(r, words.shares)), append(q.Services, pick(r, words.services))
	}
	return q
}

// aimedRequest is one that a rule of the list is likely to cover.
func aimedRequest(r *rand.Rand, s Spec) access.Call {
	q, rule := randomRequest(r), s.Rules[r.IntN(len(s.Rules))]
	if op := pick(r, rule.Operations); !strings.HasSuffix(op, "*") {
		q.Operation = op
	}
	if group, version, ok := strings.Cut(pick(r, rule.Pipes), "-"); ok && group != "*" {
		q.Group, q.Version = group, strings.Replace(version, "*", "v1", 1)
	}
	c := rule.Callers[r.IntN(len(rule.Callers))]
	who := caller.Caller{Assurance: "process", User: caller.User{SID: c.User}, Process: caller.Process{Exe: strings.Replace(c.Exe, "*", "a.exe", 1)}, Token: c.Token}
	if c.Namespace != "" {
		who = caller.Caller{
			Assurance: "pod", User: caller.User{SID: c.User}, Process: caller.Process{Exe: who.Process.Exe}, Token: c.Token, Pod: caller.Pod{Namespace: c.Namespace, ServiceAccount: c.ServiceAccount},
			Container: caller.Container{Name: c.Container, Image: strings.Replace(c.Image, "*", "x", 1), HostProcess: c.HostProcess != nil && *c.HostProcess},
		}
	}
	who.Doubt = doubts[r.IntN(4)]
	if r.IntN(4) > 0 {
		q.Caller = who
	}
	q.Paths = nil
	for range access.TakesPaths(q.Operation) {
		q.Paths = append(q.Paths, pick(r, append([]string{`C:\k`}, rule.Paths...))+`\x`)
	}
	q.Shares, q.Services = []string{`\\files.example\data`}, rule.Services[:min(1, len(rule.Services))]
	return q
}

func TestDecideIsTheFirstRuleOfAStraightforwardLoop(t *testing.T) {
	allowed, denied, named, behind := 0, 0, 0, 0
	for seed := range uint64(500) {
		r := newRand(seed)
		spec := randomSpec(r)
		policy, err := New(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			q := randomRequest(r)
			if r.IntN(2) == 0 {
				q = aimedRequest(r, spec)
			}
			first, naming, got := straightforward(policy.rules, q), straightforwardlyNaming(policy, q), policy.Decide(q)
			want := cmp.Or(naming, first)
			if got.Rule != want || got.Allowed != (want != "") {
				t.Fatalf("seed %d: %+v: rule %q, want %q\n%+v", seed, q, got.Rule, want, spec)
			}
			wantNamed := naming != ""
			if got.Named != wantNamed {
				t.Fatalf("seed %d: %+v: named %v, want %v\n%+v", seed, q, got.Named, wantNamed, spec)
			}
			explained, explainedNamed := "", false
			for _, v := range policy.Explain(q) {
				if v.Decides {
					explained += v.Rule
				}
				explainedNamed = explainedNamed || v.Names
			}
			if explained != want || explainedNamed != wantNamed {
				t.Fatalf("seed %d: %+v: explained as %q, named %v, want %q, %v", seed, q, explained, explainedNamed, want, wantNamed)
			}
			if wantNamed {
				named++
			}
			if wantNamed && naming != first {
				behind++
			}
			if want == "" {
				denied++
			} else {
				allowed++
			}
			checkConnections(t, policy, q)
			checkAdmits(t, policy, q)
		}
	}
	if allowed < 1000 || denied < 1000 {
		t.Errorf("%d requests were allowed and %d denied: too few of one kind to prove anything", allowed, denied)
	}
	if named < 300 || behind < 50 {
		t.Errorf("%d callers were named, %d of them by a rule behind one that allows: too few to prove anything", named, behind)
	}
}

func checkConnections(t *testing.T, p *Policy, c access.Call) {
	t.Helper()
	want := 0
	for i := range p.rules {
		if n := p.rules[i].Limits.Connections; want == 0 && n > 0 && isFor(p.rules[i], c) {
			want = n
		}
	}
	if got := p.Connections(c.Group, c.Version, c.Caller); got != want {
		t.Fatalf("%+v may hold %d connections, want %d", c, got, want)
	}
}

func checkAdmits(t *testing.T, p *Policy, c access.Call) {
	t.Helper()
	want := slices.ContainsFunc(p.rules, func(r access.Rule) bool { return isFor(r, c) })
	got := p.Admits(c.Group, c.Version, c.Caller)
	if got != want {
		t.Fatalf("%+v is admitted: %v, want %v", c, got, want)
	}
	if d := p.Decide(c); d.Allowed && !got {
		t.Fatalf("%+v is allowed a call by %q, and yet a stranger", c, d.Rule)
	}
}
