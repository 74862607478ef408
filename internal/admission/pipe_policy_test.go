package admission

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// wholePolicy is a PipePolicy that uses every field.
func wholePolicy() PipePolicy {
	return PipePolicy{
		Pipes: []string{"csi-proxy-*", "a.b_{c}"}, Action: ActionWarn, Requirement: PrivilegedAndAllowedNamespace,
		Subjects: []access.Subject{
			{Name: "node", Namespace: "kube-system", ServiceAccounts: []string{"sa"}, Containers: []string{"c"}, Images: []string{"example.com/a:*", "b"}},
			{Name: "late", Namespace: "kube-system", Owner: "team", Reason: "moving", ExpiresAt: clock},
			{Name: "agent", Account: "S-1-5-18", Program: `C:\agent.exe`},
		},
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for want, change := range map[string]func(*PipePolicy){
		"pipes: at least one pipe is needed":                                                      func(p *PipePolicy) { p.Pipes = nil },
		"pipes: 65 entries, and at most 64 are taken":                                             func(p *PipePolicy) { p.Pipes = make([]string, 65) },
		"pipes[1]: it is empty":                                                                   func(p *PipePolicy) { p.Pipes[1] = "" },
		"pipes[1]: 254 characters":                                                                func(p *PipePolicy) { p.Pipes[1] = long(254) },
		`pipes[1]: "csi-proxy-*" is in the list already`:                                          func(p *PipePolicy) { p.Pipes[1] = p.Pipes[0] },
		`pipes[0]: * is neither`:                                                                  func(p *PipePolicy) { p.Pipes[0] = "*" },
		`pipes[0]: pipe pattern "\\\\.\\pipe\\x" has a separator`:                                 func(p *PipePolicy) { p.Pipes[0] = `\\.\pipe\x` },
		`pipes[0]: pipe pattern "a*b" has a *`:                                                    func(p *PipePolicy) { p.Pipes[0] = "a*b" },
		`pipes[0]: pipe pattern "a b" has ' '`:                                                    func(p *PipePolicy) { p.Pipes[0] = "a b" },
		`pipes[0]: pipe pattern "a." ends in a dot`:                                               func(p *PipePolicy) { p.Pipes[0] = "a." },
		"admission.action: Allow is none of Deny, Warn, Audit":                                    func(p *PipePolicy) { p.Action = "Allow" },
		"admission.requirement: None is none of":                                                  func(p *PipePolicy) { p.Requirement = "None" },
		"subjects: 257 entries":                                                                   func(p *PipePolicy) { p.Subjects = make([]access.Subject, 257) },
		`subjects[0].name: "": want`:                                                              func(p *PipePolicy) { p.Subjects[0].Name = "" },
		`subjects[0].name: "A": want`:                                                             func(p *PipePolicy) { p.Subjects[0].Name = "A" },
		`subjects[0].name: "a-": want`:                                                            func(p *PipePolicy) { p.Subjects[0].Name = "a-" },
		`subjects[0].name: "a<U+000A>": want`:                                                     func(p *PipePolicy) { p.Subjects[0].Name = "a\n" },
		`subjects[1].name: "node" is the name of another`:                                         func(p *PipePolicy) { p.Subjects[1].Name = "node" },
		`subjects[0].namespace: "": want`:                                                         func(p *PipePolicy) { p.Subjects[0].Namespace = "" },
		`subjects[0].namespace: "*": want`:                                                        func(p *PipePolicy) { p.Subjects[0].Namespace = "*" },
		`subjects[0].namespace: "xxx`:                                                             func(p *PipePolicy) { p.Subjects[0].Namespace = long(64) },
		"subjects[0].serviceAccounts[0]: it is empty":                                             func(p *PipePolicy) { p.Subjects[0].ServiceAccounts[0] = "" },
		`serviceAccounts[0]: "*" matches no service account`:                                      func(p *PipePolicy) { p.Subjects[0].ServiceAccounts[0] = "*" },
		`serviceAccounts[0]: "csi-*" matches no service`:                                          func(p *PipePolicy) { p.Subjects[0].ServiceAccounts[0] = "csi-*" },
		`serviceAccounts[0]: "Driver" is not the name of a`:                                       func(p *PipePolicy) { p.Subjects[0].ServiceAccounts[0] = "Driver" },
		`subjects[0].containers[0]: "*" matches no container`:                                     func(p *PipePolicy) { p.Subjects[0].Containers[0] = "*" },
		`subjects[0].containers[0]: "a.b" is not the name`:                                        func(p *PipePolicy) { p.Subjects[0].Containers[0] = "a.b" },
		`namespace: "kube-*": want lower-case letters, digits and -, at most 63; names are exact`: func(p *PipePolicy) { p.Subjects[0].Namespace = "kube-*" },
		"subjects[0].serviceAccounts: 65 entries":                                                 func(p *PipePolicy) { p.Subjects[0].ServiceAccounts = make([]string, 65) },
		"subjects[0].containers[0]: 64 characters":                                                func(p *PipePolicy) { p.Subjects[0].Containers[0] = long(64) },
		"subjects[0].images[0]: 513 characters":                                                   func(p *PipePolicy) { p.Subjects[0].Images[0] = long(513) },
		`subjects[0].images[0]: "*": a * stands`:                                                  func(p *PipePolicy) { p.Subjects[0].Images[0] = "*" },
		`subjects[0].images[0]: "alpine*": a * stands`:                                            func(p *PipePolicy) { p.Subjects[0].Images[0] = "alpine*" },
		`subjects[0].images[0]: "a/*/b": a * stands`:                                              func(p *PipePolicy) { p.Subjects[0].Images[0] = "a/*/b" },
		`subjects[0].images[0]: "a/**": a * stands`:                                               func(p *PipePolicy) { p.Subjects[0].Images[0] = "a/**" },
		"subjects[2]: a process of the node is in no pod":                                         func(p *PipePolicy) { p.Subjects[2].Namespace = "a" },
		`subjects[2]: account "" of a process`:                                                    func(p *PipePolicy) { p.Subjects[2].Account = "" },
		`subjects[2]: program "" of a process`:                                                    func(p *PipePolicy) { p.Subjects[2].Program = "" },
		"subjects[2]: no process of the node has a token":                                         func(p *PipePolicy) { p.Subjects[2].RequireToken = true },
		"subjects[1].owner: 254 characters":                                                       func(p *PipePolicy) { p.Subjects[1].Owner = long(254) },
		"subjects[1].reason: 1025 characters":                                                     func(p *PipePolicy) { p.Subjects[1].Reason = long(1025) },
		"subjects[1]: a subject that expires":                                                     func(p *PipePolicy) { p.Subjects[1].Reason = "" },
		"subjects[1].expiresAt: the year 10000":                                                   func(p *PipePolicy) { p.Subjects[1].ExpiresAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"subjects[1].expiresAt: the year 0":                                                       func(p *PipePolicy) { p.Subjects[1].ExpiresAt = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC) },
	} {
		p := wholePolicy()
		change(&p)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
		own := Policies{Parameters: DefaultParameters(), PipePolicies: map[string]PipePolicy{"p": p}}
		if _, err := own.Bind(policy.Modules{}); err == nil || !strings.Contains(err.Error(), `PipePolicy "p".`) && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: bound with %v", want, err)
		}
	}
	p := PipePolicy{Action: "x", Requirement: "y", Subjects: []access.Subject{{}}}
	if err := p.Validate(); strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("not every fault at once: %v", err)
	}
}

func TestValidateTakesWhatTheAPITakes(t *testing.T) {
	for i, p := range []PipePolicy{wholePolicy(), {Pipes: []string{"x"}}, {Pipes: []string{strings.Repeat("x", 252) + "*"}, Action: ActionAudit}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestDataOfPoliciesIsWhatRulesAreDocumentedToSee(t *testing.T) {
	p := Policies{
		Parameters:       allowing(),
		PipePolicies:     map[string]PipePolicy{"whole": wholePolicy(), "empty": {Pipes: []string{"x"}}},
		ModuleParameters: map[string]any{"mine": map[string]any{"n": 1}},
	}
	p.Parameters.PipePolicies = map[string]PipePolicy{"own": {Pipes: []string{"y"}, Action: ActionAudit}}
	m := bound(t, p, policy.Modules{Files: map[string]string{"a.rego": "x"}})
	got := m.Data["pipeguard"].(map[string]any)
	parameters := p.Parameters.data()
	parameters["strictestAction"] = "Deny"
	want := map[string]any{
		"parameters": parameters,
		"modules":    p.ModuleParameters,
		"scope":      got["scope"],
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
	if m.Files["a.rego"] != "x" || m.Companion.(*Scope) == nil || len(m.Checks) < 10 {
		t.Errorf("bound %+v", m)
	}
}

func TestPartsOfASecondNeverProlongAPermission(t *testing.T) {
	s := access.Subject{ExpiresAt: time.Date(2026, 1, 2, 3, 4, 5, 999_999_999, time.FixedZone("", 3600))}
	if at, warn := expiry(&s); at != "2026-01-02T02:04:05Z" || warn != "2025-12-26T02:04:05Z" {
		t.Errorf("%s, %s", at, warn)
	}
}

// What decides must be in what is hashed, or a change would be taken for none.
func TestEverythingThatChangesTheScopeChangesTheData(t *testing.T) {
	data := func(change func(*Policies)) string {
		p := overlapping()
		change(&p)
		return string(marshal(t, bound(t, p, policy.Modules{}).Data))
	}
	same := data(func(*Policies) {})
	if again := data(func(*Policies) {}); again != same {
		t.Error("the same policies have other data")
	}
	for name, change := range map[string]func(*Policies){
		"guarded pipes":        func(p *Policies) { p.Parameters.GuardedPipes = []string{"x"} },
		"pipes of equal power": func(p *Policies) { p.Parameters.EqualPowerPipes = nil },
		"paths of equal power": func(p *Policies) { p.Parameters.EqualPowerPaths = nil },
		"guarded host paths":   func(p *Policies) { p.Parameters.GuardedHostPaths = nil },
		"a policy's pipes": func(p *Policies) {
			p.PipePolicies["disk"] = PipePolicy{Pipes: []string{"csi-proxy-d*"}, Action: ActionAudit}
		},
		"a policy of the file": func(p *Policies) { p.Parameters.PipePolicies = map[string]PipePolicy{"x": {Pipes: []string{"x"}}} },
		"a policy's subject": func(p *Policies) {
			disk := p.PipePolicies["disk"]
			disk.Subjects = append(slices.Clone(disk.Subjects), access.Subject{Name: "more", Namespace: "more"})
			p.PipePolicies["disk"] = disk
		},
		"a policy's action": func(p *Policies) {
			disk := p.PipePolicies["disk"]
			disk.Action, disk.Requirement = ActionWarn, PrivilegedOrAllowedNamespace
			p.PipePolicies["disk"] = disk
		},
		"a policy less":         func(p *Policies) { delete(p.PipePolicies, "disk") },
		"a module's parameters": func(p *Policies) { p.ModuleParameters = map[string]any{"x": 1} },
	} {
		if data(change) == same {
			t.Errorf("%s: the data is the same", name)
		}
	}
}

func TestGovernorsAreFoundHoweverTheirPatternsOverlap(t *testing.T) {
	policies := map[string]PipePolicy{}
	for i, pipes := range [][]string{{"a"}, {"A", "a"}, {"a*"}, {"ab*", "abc"}, {"abc"}, {"b*", "a*"}, {"\u017fx*"}} {
		policies[fmt.Sprint("p", i)] = PipePolicy{Pipes: pipes}
	}
	g := newGovernors(policies)
	for pipe, want := range map[string][]string{
		"":       {},
		"z":      {},
		"a":      {"p0", "p1", "p2", "p5"},
		`a\x`:    {"p0", "p1", "p2", "p5"}, // what lies below a pipe belongs to it
		"a2":     {"p2", "p5"},
		"ab":     {"p2", "p3", "p5"},
		"abc":    {"p2", "p3", "p4", "p5"},
		"abcd":   {"p2", "p3", "p5"},
		"b":      {"p5"},
		"sx":     {"p6"},
		`z\a`:    {},
		`\a`:     {},
		`abc\ab`: {"p2", "p3", "p4", "p5"},
	} {
		by, _ := g.of(pipe)
		if diff := cmp.Diff(want, by.names); diff != "" {
			t.Errorf("%q (-want +got):\n%s", pipe, diff)
		}
	}
	for name := range policies { // the lists that are kept were not written to
		if by, _ := g.of("a"); len(by.names) != 4 {
			t.Errorf("%s: %q after other questions", name, by.names)
		}
	}
}

func TestTheCanarysPipeIsOneThatNoPolicyLetsPass(t *testing.T) {
	lenient := func(pipes ...string) Policies {
		return Policies{Parameters: DefaultParameters(), PipePolicies: map[string]PipePolicy{"lenient": {Pipes: pipes, Action: ActionAudit}}}
	}
	strict := lenient("csi-proxy*")
	strict.PipePolicies["strict"] = PipePolicy{Pipes: []string{"other"}}
	for name, c := range map[string]struct {
		policies Policies
		want     string
	}{
		"no policy":                         {Policies{Parameters: DefaultParameters()}, "csi-proxy-filesystem-v1"},
		"a policy that denies":              {Policies{Parameters: DefaultParameters(), PipePolicies: map[string]PipePolicy{"strict": {Pipes: []string{"csi-proxy*"}}}}, "csi-proxy-filesystem-v1"},
		"a lenient policy of that one pipe": {lenient("CSI-proxy-filesystem-v1"), "csi-proxy-pipeguard-canary"},
		"a lenient policy of all":           {lenient("csi*"), ""},
		"a strict one beside it":            {strict, "other"},
	} {
		if got := testScope(t, c.policies).canary; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
