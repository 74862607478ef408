package acl

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// agent is a process of the node.
var agent = caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\Tools\Agent.exe`}}

func withAgent(change func(*caller.Caller)) caller.Caller {
	c := agent
	change(&c)
	return c
}

var (
	agentPattern = CallerPattern{User: "S-1-5-18", Exe: `c:\tools\agent.EXE`}
	podPattern   = CallerPattern{Namespace: "kube-system", ServiceAccount: "node-sa", Container: "driver"}
)

// everything is a rule that allows all that is asked here and names nobody.
var everything = Rule{
	Name: "everything", Pipes: []string{"*", "system-*"}, Operations: []string{"*", "/v1.Volume/FormatVolume"},
	Callers: []CallerPattern{{Namespace: "kube-system"}, {User: "S-1-5-18"}, {User: "S-1-5-93-2-1"}, {Exe: `C:\Tools\*`}},
}

// naming is whether a rule, behind one that allows everything and before it, names the caller of a request.
func naming(t *testing.T, rule Rule, r access.Call) bool {
	t.Helper()
	rule.Name = "names"
	var answers []bool
	for _, rules := range [][]Rule{{everything, rule}, {rule, everything}} {
		p, err := New(Spec{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		answers = append(answers, p.Decide(r).Named)
	}
	if answers[0] != answers[1] {
		t.Errorf("%+v: named %v behind a rule that allows it, and %v before it", rule, answers[0], answers[1])
	}
	return answers[0]
}

func TestRulesNameWhomTheySpellOut(t *testing.T) {
	ask := func(pipe, operation string, c caller.Caller) access.Call {
		group, version, _ := strings.Cut(pipe, "-")
		return access.Call{Group: group, Version: version, Operation: operation, Caller: c}
	}
	rule := func(pipe, operation string, callers ...CallerPattern) Rule {
		return Rule{Pipes: []string{pipe}, Operations: []string{operation}, Callers: callers}
	}
	format := func(c caller.Caller) access.Call { return ask("volume-v1", "FormatVolume", c) }
	account := CallerPattern{ServiceAccount: "kube-system/node-sa"}
	anyAccount := CallerPattern{Namespace: "kube-system", Container: "driver"}
	for _, c := range []struct {
		name string
		rule Rule
		ask  access.Call
		want bool
	}{
		{"a pod", rule("volume-v1", "FormatVolume", podPattern), format(podCaller), true},
		{"all versions of a group", rule("volume-*", "FormatVolume", podPattern), format(podCaller), true},
		{"any account with the container", rule("volume-v1", "FormatVolume", anyAccount), format(podCaller), true},
		{"namespace within the account", rule("volume-v1", "FormatVolume", account), format(podCaller), true},
		{"namespace beside the account", rule("volume-v1", "FormatVolume", CallerPattern{Namespace: "kube-system", ServiceAccount: "node-sa"}), format(podCaller), true},
		{"a program", rule("volume-v1", "FormatVolume", agentPattern), format(agent), true},
		{"every operation", rule("volume-v1", "*", podPattern), format(podCaller), false},
		{"every operation of a program", rule("volume-v1", "*", agentPattern), format(agent), false},
		{"every group", rule("*-v1", "FormatVolume", podPattern), format(podCaller), false},
		{"every group for a program", rule("*-v1", "FormatVolume", agentPattern), format(agent), false},
		{"every pipe", rule("*", "FormatVolume", podPattern), format(podCaller), false},
		{"every pipe for a program", rule("*", "FormatVolume", agentPattern), format(agent), false},
		{"a method by its full name", rule("volume-v1", "/v1.Volume/FormatVolume", podPattern), ask("volume-v1", "/v1.Volume/FormatVolume", podCaller), false},
		{"the operation of a method by its full name", rule("volume-v1", "/v1.Volume/FormatVolume", podPattern), format(podCaller), false},
		{"all methods of a service", rule("volume-v1", "/v1.Volume/*", podPattern), ask("volume-v1", "/v1.Volume/FormatVolume", podCaller), false},
		{"a namespace alone", rule("volume-v1", "FormatVolume", CallerPattern{Namespace: "kube-system"}), format(podCaller), false},
		{"a namespace with a user and program", rule("volume-v1", "FormatVolume", CallerPattern{Namespace: "kube-system", User: "S-1-5-93-2-1", Exe: `C:\driver\node.exe`}), format(podCaller), false},
		{"a namespace with an image", rule("volume-v1", "FormatVolume", CallerPattern{Namespace: "kube-system", Image: "r.io/team-a/*"}), format(podCaller), false},
		{"a user alone", rule("volume-v1", "FormatVolume", CallerPattern{User: "S-1-5-18"}), format(agent), false},
		{"a program of an image", rule("volume-v1", "FormatVolume", CallerPattern{User: "S-1-5-93-2-1", Exe: `C:\driver\node.exe`, Image: "r.io/team-a/*"}), format(podCaller), false},
		{"a program of a HostProcess container", rule("volume-v1", "FormatVolume", CallerPattern{User: "S-1-5-18", Exe: `C:\Tools\Agent.exe`, HostProcess: isTrue()}),
			format(with(func(c *caller.Caller) {
				c.User.SID, c.Process.Exe, c.Container.HostProcess = agent.User.SID, agent.Process.Exe, true
			})), false},
		{"a program of no HostProcess container", rule("volume-v1", "FormatVolume", CallerPattern{User: "S-1-5-93-2-1", Exe: `C:\driver\node.exe`, HostProcess: isFalse()}), format(podCaller), false},
		{"a program of a container", rule("volume-v1", "FormatVolume", CallerPattern{User: "S-1-5-93-2-1", Exe: `C:\driver\node.exe`, Container: "driver"}), format(podCaller), false},
		{"a program alone", rule("volume-v1", "FormatVolume", CallerPattern{Exe: `C:\Tools\Agent.exe`}), format(agent), false},
		{"programs of a directory", rule("volume-v1", "FormatVolume", CallerPattern{User: "S-1-5-18", Exe: `C:\Tools\*`}), format(agent), false},
		{"of two callers the one that agrees", rule("volume-v1", "FormatVolume", CallerPattern{ServiceAccount: "kube-system/other"}, CallerPattern{Namespace: "kube-system"}), format(podCaller), false},
		{"of two callers that agree one", rule("volume-v1", "FormatVolume", CallerPattern{Namespace: "kube-system"}, podPattern), format(podCaller), true},
		{"the operation beside a star", Rule{Pipes: []string{"volume-v1"}, Operations: []string{"*", "FormatVolume"}, Callers: []CallerPattern{podPattern}}, format(podCaller), true},
		{"the pipe beside a star", Rule{Pipes: []string{"*", "volume-*"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{podPattern}}, format(podCaller), true},
		{"another version than the one spelled out", Rule{Pipes: []string{"*", "volume-v1beta1"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{podPattern}}, format(podCaller), false},

		{"another operation", rule("volume-*", "ResizeVolume", podPattern), format(podCaller), false},
		{"another operation of a program", rule("volume-*", "ResizeVolume", agentPattern), format(agent), false},
		{"an operation in other case", rule("volume-*", "FormatVolume", podPattern), ask("volume-v1", "formatVolume", podCaller), false},
		{"another group", rule("disk-*", "FormatVolume", podPattern), format(podCaller), false},
		{"another group for a program", rule("disk-*", "FormatVolume", agentPattern), format(agent), false},
		{"a group that must be spelled out", rule("system-*", "StopService", podPattern), ask("system-v1alpha1", "StopService", podCaller), true},

		{"another namespace", rule("volume-v1", "FormatVolume", podPattern), format(with(func(c *caller.Caller) { c.Pod.Namespace = "shop" })), false},
		{"no namespace", rule("volume-v1", "FormatVolume", podPattern), format(with(func(c *caller.Caller) { c.Pod.Namespace = "" })), false},
		{"a namespace in capitals", rule("volume-v1", "FormatVolume", podPattern), format(with(func(c *caller.Caller) { c.Pod.Namespace = "Kube-System" })), false},
		{"another account", rule("volume-v1", "FormatVolume", account), format(with(func(c *caller.Caller) { c.Pod.ServiceAccount = "default" })), false},
		{"an account that is not known", rule("volume-v1", "FormatVolume", account), format(with(func(c *caller.Caller) { c.Pod.ServiceAccount = "" })), false},
		{"a container of another account", rule("volume-v1", "FormatVolume", anyAccount), format(with(func(c *caller.Caller) { c.Pod.ServiceAccount = "other" })), true},
		{"a container of an account that is not known", rule("volume-v1", "FormatVolume", anyAccount), format(with(func(c *caller.Caller) { c.Pod.ServiceAccount = "" })), true},
		{"another container", rule("volume-v1", "FormatVolume", anyAccount), format(with(func(c *caller.Caller) { c.Container.Name = "other" })), false},
		{"no container", rule("volume-v1", "FormatVolume", anyAccount), format(with(func(c *caller.Caller) { c.Container.Name = "" })), false},
		{"a container in capitals", rule("volume-v1", "FormatVolume", anyAccount), format(with(func(c *caller.Caller) { c.Container.Name = "Driver" })), false},
		{"another container of the account", rule("volume-v1", "FormatVolume", podPattern), format(with(func(c *caller.Caller) { c.Container.Name = "other" })), false},
		{"a process for a container", rule("volume-v1", "FormatVolume", anyAccount), format(agent), false},

		{"another user", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.User.SID = "S-1-5-19" })), false},
		{"no user", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.User.SID = "" })), false},
		{"another program", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Process.Exe = `C:\Tools\Agent.exe.exe` })), false},
		{"a program on another drive", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Process.Exe = `D:\Tools\Agent.exe` })), false},
		{"the name of the program", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Process.Exe = "Agent.exe" })), false},
		{"no program", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Process.Exe = "" })), false},
		{"a program in a pod", rule("volume-v1", "FormatVolume", agentPattern), format(with(func(c *caller.Caller) { c.User.SID, c.Process.Exe = agent.User.SID, agent.Process.Exe })), false},
		{"a program that may be in a pod", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Pod.Namespace = "kube-system" })), false},
		{"a program that may be a pod's", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Pod.Name = "x" })), false},
		{"a program that may be an account's", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Pod.ServiceAccount = "x" })), false},
		{"a program that may be in a container", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Container.Name = "x" })), false},
		{"a program that may be an image's", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Container.Image = "x" })), false},
		{"a program that may be in a HostProcess container", rule("volume-v1", "FormatVolume", agentPattern), format(withAgent(func(c *caller.Caller) { c.Container.HostProcess = true })), false},
		{"a program of a rule for pods", rule("volume-v1", "FormatVolume", CallerPattern{User: "S-1-5-18", Exe: `C:\Tools\Agent.exe`, Assurance: "pod"}),
			format(with(func(c *caller.Caller) { c.User.SID, c.Process.Exe = agent.User.SID, agent.Process.Exe })), false},

		// All of the rule counts.
		{"an image", rule("volume-v1", "FormatVolume", CallerPattern{ServiceAccount: "kube-system/node-sa", Image: "r.io/team-a/*"}), format(podCaller), true},
		{"another image", rule("volume-v1", "FormatVolume", CallerPattern{ServiceAccount: "kube-system/node-sa", Image: "r.io/team-b/*"}), format(podCaller), false},
		{"a token", rule("volume-v1", "FormatVolume", CallerPattern{ServiceAccount: "kube-system/node-sa", Token: true}), format(with(func(c *caller.Caller) { c.Token = true })), true},
		{"no token", rule("volume-v1", "FormatVolume", CallerPattern{ServiceAccount: "kube-system/node-sa", Token: true}), format(podCaller), false},
		{"an operation without paths", Rule{Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{podPattern}, Paths: []string{`C:\k`}}, format(podCaller), false},
	} {
		if got := naming(t, c.rule, c.ask); got != c.want {
			t.Errorf("%s: named %v", c.name, got)
		}
	}
}

func TestANameNeedsItsAssurance(t *testing.T) {
	for pattern, c := range map[*CallerPattern]caller.Caller{&podPattern: podCaller, &agentPattern: agent} {
		rule := Rule{Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{*pattern}}
		for _, assurance := range []string{"none", "sid", "process", "pod", "", "Pod", "Process", "kernel"} {
			asked := c
			asked.Assurance = caller.Assurance(assurance)
			got := naming(t, rule, access.Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: asked})
			if got != (asked.Assurance == c.Assurance) {
				t.Errorf("%v at assurance %q: named %v", pattern, assurance, got)
			}
		}
	}
}

// A process that may be in a container keeps what rules allow it, and loses its name.
func TestADoubtNamesNobody(t *testing.T) {
	p, err := New(Spec{Rules: []Rule{{
		Name: "r", Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{{User: "S-1-5-18", Exe: `C:\agent.exe`}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, inDoubt := range []bool{false, true} {
		who := caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\agent.exe`}}
		if inDoubt {
			who.Doubt = "the runtime does not answer"
		}
		if d := p.Decide(access.Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: who}); !d.Allowed || d.Named == inDoubt {
			t.Errorf("in doubt %t: %+v", inDoubt, d)
		}
	}
}

func TestServicesOfARuleLimitWhomItNames(t *testing.T) {
	for _, c := range []struct {
		pattern CallerPattern
		caller  caller.Caller
	}{{podPattern, podCaller}, {agentPattern, agent}} {
		rule := Rule{Pipes: []string{"system-*"}, Operations: []string{"StopService"}, Callers: []CallerPattern{c.pattern}, Services: []string{"lanmanworkstation", "msiscsi"}}
		for _, services := range [][]string{{"MSiSCSI"}, {"winrm"}, {""}, {"msiscsi "}, nil, {"msiscsi", "winrm"}} {
			r := access.Call{Group: "system", Version: "v1alpha1", Operation: "StopService", Caller: c.caller, Services: services}
			if got := naming(t, rule, r); got != slices.Equal(services, []string{"MSiSCSI"}) {
				t.Errorf("%v, %q: named %v", c.pattern, services, got)
			}
		}
	}
}

// What two rules ask for does not mix.
func TestOneRuleOfSeveralSufficesToNameAndTwoHalvesDoNot(t *testing.T) {
	rules := func(a, b Rule) *Policy {
		a.Name, b.Name = "a", "b"
		for _, r := range []*Rule{&a, &b} {
			r.Pipes, r.Operations = []string{"system-*"}, []string{"StopService"}
		}
		p, err := New(Spec{Rules: []Rule{everything, a, b}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	other := CallerPattern{Namespace: "kube-system", ServiceAccount: "node-sa", Container: "other"}
	r := access.Call{Group: "system", Version: "v1alpha1", Operation: "StopService", Caller: podCaller, Services: []string{"MSiSCSI"}}
	if !rules(Rule{Callers: []CallerPattern{other}}, Rule{Callers: []CallerPattern{podPattern}, Services: []string{"msiscsi"}}).Decide(r).Named {
		t.Error("the second rule names nobody")
	}
	if rules(Rule{Callers: []CallerPattern{podPattern}, Services: []string{"winrm"}}, Rule{Callers: []CallerPattern{other}, Services: []string{"msiscsi"}}).Decide(r).Named {
		t.Error("halves of two rules name somebody")
	}
}

func TestNobodyIsNamedOnAForwardedPipe(t *testing.T) {
	pipe := `\\.\pipe\volume-v1`
	policy, err := New(Spec{Rules: []Rule{{
		Name: "r", Pipes: []string{pipe, "volume-v1"}, Operations: []string{"*", "FormatVolume", "/a.B/C"}, Callers: []CallerPattern{podPattern, agentPattern},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []caller.Caller{podCaller, agent} {
		for _, operation := range []string{"FormatVolume", "/a.B/C", "/a.B/FormatVolume"} {
			if d := policy.Decide(access.Call{Group: pipe, Operation: operation, Caller: c}); d.Named {
				t.Errorf("%s: %+v", operation, d)
			}
		}
	}
}

// Who is named is a matter of the rules: a mode lets pass, and names nobody.
func TestADenialNamesNobody(t *testing.T) {
	policy, err := New(Spec{
		Modes: []PipeMode{{"volume-v1", access.LogOnly}},
		Rules: []Rule{{Name: "r", Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{{ServiceAccount: "kube-system/node-sa", Token: true}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := policy.Decide(access.Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: podCaller}); !d.Allowed || d.Named {
		t.Errorf("%+v", d)
	}
	if d := DenyAll().Decide(access.Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: podCaller}); d.Named {
		t.Errorf("without rules: %+v", d)
	}
}

func TestNamingSaysWhomRulesNameAndWhomNot(t *testing.T) {
	policy, err := New(Spec{Rules: []Rule{
		{Name: "all", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{{Namespace: "team-a"}, {ServiceAccount: "team-b/node"}}},
		{Name: "narrow", Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{{ServiceAccount: "team-b/node", Image: "r.io/b/*"}, {User: "S-1-5-18", Exe: `C:\a.exe`}}},
		{Name: "directory", Pipes: []string{"volume-*"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{{User: "S-1-5-18", Exe: `C:\tools\*`}}},
		{Name: "another operation", Pipes: []string{"volume-*"}, Operations: []string{"MountVolume"}, Callers: []CallerPattern{{Namespace: "team-d"}}},
		{Name: "another group", Pipes: []string{"disk-*"}, Operations: []string{"*"}, Callers: []CallerPattern{{Namespace: "team-d"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	text := func(list []RuleCaller) (lines []string) {
		for _, c := range list {
			lines = append(lines, c.Rule+": "+c.Caller.String())
		}
		return lines
	}
	named, unnamed := policy.Naming("volume", "FormatVolume")
	if want := []string{"narrow: serviceAccount=team-b/node image=r.io/b/*", `narrow: user=S-1-5-18 exe=C:\a.exe`}; !slices.Equal(text(named), want) {
		t.Errorf("named are %q, want %q", text(named), want)
	}
	if want := []string{"all: namespace=team-a", `directory: user=S-1-5-18 exe=C:\tools\*`}; !slices.Equal(text(unnamed), want) {
		t.Errorf("not named are %q, want %q", text(unnamed), want)
	}
	if named, unnamed := policy.Naming("system", "StopService"); len(named)+len(unnamed) > 0 {
		t.Errorf("a star covers system: %q, %q", named, unnamed)
	}
}

// A rule of many callers, behind another that allows, names each of them and nobody else.
func TestOneOfManyCallersIsNamed(t *testing.T) {
	const callers = 20_000
	rule := Rule{Name: "many", Pipes: []string{"volume-*"}, Operations: []string{"FormatVolume"}}
	for i := range callers {
		rule.Callers = append(rule.Callers, CallerPattern{User: "S-1-5-18", Exe: fmt.Sprintf(`C:\%d.exe`, i)})
	}
	policy, err := New(Spec{Rules: []Rule{everything, rule}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{0: "many", callers - 1: "many", callers: "everything"} {
		r := access.Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: withAgent(func(c *caller.Caller) { c.Process.Exe = fmt.Sprintf(`C:\%d.exe`, i) })}
		if d := policy.Decide(r); d.Rule != want || d.Named != (want == "many") {
			t.Errorf("caller %d: %+v", i, d)
		}
	}
}

func TestExplainSaysWhoIsNamed(t *testing.T) {
	names := Rule{Name: "names", Pipes: []string{"volume-*"}, Operations: []string{"FormatVolume"}, Callers: []CallerPattern{{Namespace: "kube-system"}, podPattern}}
	for _, c := range []struct {
		rules []Rule
		names []bool
		why   string
	}{
		{[]Rule{everything}, []bool{false}, "callers[0] agrees; no rule names this caller for FormatVolume"},
		{[]Rule{everything, names}, []bool{false, true}, "callers[0] agrees; but rule names names this caller for FormatVolume"},
		{[]Rule{names, everything}, []bool{true, false}, "callers[0] agrees"},
	} {
		policy, err := New(Spec{Rules: c.rules})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range policy.Explain(access.Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: podCaller}) {
			if v.Names != c.names[i] || i == 0 && v.Why != c.why {
				t.Errorf("%+v", v)
			}
		}
	}
}

// What one rule permits to callers whom it does not name is not permitted to those whom another names, whichever of them is first.
func TestTwoRulesDoNotAddUpToMoreThanEach(t *testing.T) {
	permits := Rule{Name: "permits", Pipes: []string{"volume-*", "system-*"}, Operations: []string{"*"}, Callers: []CallerPattern{{Namespace: "kube-system"}}, Permits: []string{access.Reformat}}
	names := Rule{Name: "names", Pipes: []string{"volume-*", "system-*"}, Operations: []string{"FormatVolume", "StopService"}, Callers: []CallerPattern{podPattern}, Services: []string{"msiscsi"}}
	for _, rules := range [][]Rule{{permits, names}, {names, permits}} {
		policy, err := New(Spec{Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		d := policy.Decide(access.Call{Group: "volume", Version: "v1", Operation: "FormatVolume", Caller: podCaller})
		if d.Rule != "names" || !d.Named || len(d.Permits) > 0 {
			t.Errorf("%+v", d)
		}
		d = policy.Decide(access.Call{Group: "system", Version: "v1alpha1", Operation: "StopService", Caller: podCaller, Services: []string{"winrm"}})
		if d.Rule != "permits" || d.Named || len(d.Services) > 0 {
			t.Errorf("%+v", d)
		}
		d = policy.Decide(access.Call{Group: "system", Version: "v1alpha1", Operation: "StopService", Caller: podCaller, Services: []string{"MSiSCSI"}})
		if d.Rule != "names" || !d.Named || len(d.Services) != 1 {
			t.Errorf("%+v", d)
		}
	}
}
