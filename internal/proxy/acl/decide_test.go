package acl

import (
	"errors"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

const driver = `C:\Program Files\driver\csi-node.exe`

// spec is the list that the tables below ask.
var spec = Spec{
	Modes: []PipeMode{{"volume-v1beta1", access.LogOnly}, {"volume-*", access.LogOnly}, {"volume-v1", access.Enforce}, {"*-v9", access.LogOnly}},
	Rules: []Rule{
		{Name: "driver", Pipes: []string{"filesystem-*", "volume-v1"}, Operations: []string{"Mkdir", "MountVolume", "CreateSymlink"}, Callers: []CallerPattern{{User: "S-1-5-18", Exe: driver}}},
		{Name: "plugins", Pipes: []string{"filesystem-v1"}, Operations: []string{"*"}, Callers: []CallerPattern{{Exe: `D:\plugins\*`}, {User: "uid:1000"}}},
		{Name: "all-v2", Pipes: []string{"*-v2alpha1"}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-19", Assurance: "process"}}},
		{Name: "everything", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-20"}}},
		{Name: "services", Pipes: []string{"system-v1alpha1"}, Operations: []string{"GetService"}, Callers: []CallerPattern{{User: "S-1-5-18"}}},
	},
}

func request(pipe, operation, assurance, user, exe string) access.Call {
	p, err := access.ParsePipe(pipe)
	if err != nil {
		panic(err)
	}
	return access.Call{Group: p.Group, Version: p.Version, Operation: operation, Caller: caller.Caller{Assurance: caller.Assurance(assurance), User: caller.User{SID: user}, Process: caller.Process{Exe: exe}}}
}

func TestDecide(t *testing.T) {
	policy, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		request access.Call
		rule    string // empty: denied
		reason  string
		allowed bool
	}{
		{"a rule names pipe, operation, user and exe", request("filesystem-v1", "Mkdir", "process", "S-1-5-18", driver), "driver", "allowed by rule driver", true},
		{"an older version of the pipe is covered by the group", request("filesystem-v1alpha1", "CreateSymlink", "process", "S-1-5-18", driver), "driver", "allowed by rule driver", true},
		{"Windows paths do not mind case", request("filesystem-v1", "Mkdir", "process", "s-1-5-18", `c:\PROGRAM FILES\Driver\CSI-node.exe`), "driver", "allowed by rule driver", true},
		{"a stronger assurance than needed will do", request("filesystem-v1", "Mkdir", "pod", "S-1-5-18", driver), "driver", "allowed by rule driver", true},
		{"a directory covers what is beneath it at any depth", request("filesystem-v1", "Rmdir", "process", "S-1-5-21-1-2-3-500", `D:\plugins\a\b\x.exe`), "plugins", "allowed by rule plugins", true},
		{"a user alone needs no process", request("filesystem-v1", "Rmdir", "sid", "uid:1000", ""), "plugins", "allowed by rule plugins", true},
		{"the star covers volume", request("volume-v2alpha1", "FormatVolume", "sid", "S-1-5-20", ""), "everything", "allowed by rule everything", true},
		{"system when it is named", request("system-v1alpha1", "GetService", "sid", "S-1-5-18", ""), "services", "allowed by rule services", true},

		{"another operation", request("filesystem-v1", "Rmdir", "process", "S-1-5-18", driver), "", "no rule that allows Rmdir here names this caller", false},
		{"an operation that no rule of the pipe allows", request("filesystem-v1beta1", "Nonsense", "process", "S-1-5-18", driver), "", "no rule that allows Nonsense here names this caller", false},
		{"the served name of an older version", request("filesystem-v1alpha1", "LinkPath", "process", "S-1-5-18", driver), "", "no rule that allows LinkPath here names this caller", false},
		{"operations mind case", request("filesystem-v1", "mkdir", "process", "S-1-5-18", driver), "", "no rule that allows mkdir here names this caller", false},
		{"the right exe under another user", request("filesystem-v1", "Mkdir", "process", "S-1-5-32", driver), "", "no rule that allows Mkdir here names this caller", false},
		{"the right user with another exe", request("filesystem-v1", "Mkdir", "process", "S-1-5-18", `C:\Windows\System32\cmd.exe`), "", "no rule that allows Mkdir here names this caller", false},
		{"an exe without proof of the process", request("filesystem-v1", "Mkdir", "sid", "S-1-5-18", driver), "", "no rule that allows Mkdir here names this caller", false},
		{"nothing known about the caller", request("filesystem-v1", "Mkdir", "none", "S-1-5-18", driver), "", "the caller is not identified", false},
		{"an assurance nobody has heard of", request("filesystem-v1", "Mkdir", "kernel", "S-1-5-18", driver), "", "the caller is not identified", false},
		{"no assurance at all", request("filesystem-v1", "Mkdir", "", "S-1-5-20", driver), "", "the caller is not identified", false},
		{"less assurance than the rule asks for", request("filesystem-v2alpha1", "Mkdir", "sid", "S-1-5-19", ""), "", "no rule that allows Mkdir here names this caller", false},
		{"a directory whose name only begins alike", request("filesystem-v1", "Rmdir", "process", "S-1-1-0", `D:\plugins-evil\x.exe`), "", "no rule that allows Rmdir here names this caller", false},
		{"the directory itself", request("filesystem-v1", "Rmdir", "process", "S-1-1-0", `D:\plugins`), "", "no rule that allows Rmdir here names this caller", false},
		{"out of the directory by dots", request("filesystem-v1", "Rmdir", "process", "S-1-1-0", `D:\plugins\..\x.exe`), "", "no rule that allows Rmdir here names this caller", false},
		{"the other separator", request("filesystem-v1", "Rmdir", "process", "S-1-1-0", `D:/plugins/x.exe`), "", "no rule that allows Rmdir here names this caller", false},
		{"an image on a device path", request("filesystem-v1", "Rmdir", "process", "S-1-1-0", `\Device\HarddiskVolume2\plugins\x.exe`), "", "no rule that allows Rmdir here names this caller", false},
		{"a stream of a file in the directory", request("filesystem-v1", "Rmdir", "process", "S-1-1-0", `D:\plugins\x:y.exe`), "", "no rule that allows Rmdir here names this caller", false},
		{"a letter that only Unicode folds to ASCII", request("filesystem-v1", "Rmdir", "process", "S-1-1-0", "D:\\plugın\u017f\\x.exe"), "", "no rule that allows Rmdir here names this caller", false},
		{"a SID that only begins alike", request("volume-v2alpha1", "FormatVolume", "process", "S-1-5-200", ""), "", "no rule that allows FormatVolume here names this caller", true},
		{"a caller without a user", request("volume-v1", "FormatVolume", "process", "", ""), "", "no rule that allows FormatVolume here names this caller", false},
		{"the star does not cover system", request("system-v1alpha1", "StopService", "process", "S-1-5-20", ""), "", "no rule for this pipe allows StopService", false},
		{"the star does not cover iscsi", request("iscsi-v1alpha2", "ConnectTarget", "process", "S-1-5-20", ""), "", "no rule names this pipe", false},
		{"a version pattern does not cover system", request("system-v2alpha1", "GetService", "process", "S-1-5-19", ""), "", "no rule names this pipe", false},
		{"LogOnly by version does not cover iscsi", request("iscsi-v9", "ConnectTarget", "process", "S-1-5-20", ""), "", "no rule names this pipe", false},
		{"LogOnly lets a denied call pass", request("volume-v1beta1", "FormatVolume", "none", "", ""), "", "the caller is not identified", true},
		{"Enforce wins where both cover", request("volume-v1", "FormatVolume", "none", "", ""), "", "the caller is not identified", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := policy.Decide(tt.request)
			if d.Rule != tt.rule || d.Allowed != tt.allowed || d.Reason != tt.reason {
				t.Errorf("got %+v, want rule %q, allowed %v, reason %q", d, tt.rule, tt.allowed, tt.reason)
			}
			if (d.Effect == access.Allow) != (tt.rule != "") {
				t.Errorf("effect %s with rule %q", d.Effect, d.Rule)
			}
			if tt.allowed && tt.rule == "" && d.Mode != access.LogOnly {
				t.Errorf("a denied call passes in mode %s", d.Mode)
			}
			if got := DenyAll().Decide(tt.request); got.Allowed || got.Effect != access.Deny || got.Mode != access.Enforce {
				t.Errorf("DenyAll: %+v", got)
			}
		})
	}
}

func TestUnixPathsMindCase(t *testing.T) {
	policy, err := New(Spec{Rules: []Rule{{Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{{Exe: "/opt/driver/*"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for exe, want := range map[string]bool{
		"/opt/driver/x": true, "/opt/driver/a/b": true, "/opt/Driver/x": false, "/opt/driver": false, "/opt/driverx/y": false,
		"/opt/driver/../x": false, "opt/driver/x": false, "/opt/driver/x (deleted)": true, "": false, "/": false,
	} {
		if got := policy.Decide(request("disk-v1", "Rescan", "process", "uid:0", exe)).Allowed; got != want {
			t.Errorf("%q: allowed %v, want %v", exe, got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	system := []CallerPattern{{User: "S-1-5-18"}}
	good := func(change func(*Rule)) Spec {
		r := Rule{Name: "r", Pipes: []string{"filesystem-v1"}, Operations: []string{"Mkdir"}, Callers: system}
		change(&r)
		return Spec{Rules: []Rule{r}}
	}
	tests := []struct {
		name  string
		spec  Spec
		field string
	}{
		{"a rule without a name", good(func(r *Rule) { r.Name = " " }), "rules[0].name"},
		{"two rules with one name", Spec{Rules: []Rule{good(func(*Rule) {}).Rules[0], good(func(*Rule) {}).Rules[0]}}, "rules[1].name"},
		{"no pipes", good(func(r *Rule) { r.Pipes = nil }), "rules[0].pipes"},
		{"an empty pipe", good(func(r *Rule) { r.Pipes = []string{""} }), "rules[0].pipes[0]"},
		{"a group without a version", good(func(r *Rule) { r.Pipes = []string{"filesystem"} }), "rules[0].pipes[0]"},
		{"a group with an empty version", good(func(r *Rule) { r.Pipes = []string{"filesystem-"} }), "rules[0].pipes[0]"},
		{"a star within a name", good(func(r *Rule) { r.Pipes = []string{"file*-v1"} }), "rules[0].pipes[0]"},
		{"a pipe's full name", good(func(r *Rule) { r.Pipes = []string{`\\.\pipe\csi-proxy-filesystem-v1`} }), "rules[0].pipes[0]"},
		{"a pipe in capitals", good(func(r *Rule) { r.Pipes = []string{"Filesystem-v1"} }), "rules[0].pipes[0]"},
		{"no operations", good(func(r *Rule) { r.Operations = nil }), "rules[0].operations"},
		{"an operation in lower case", good(func(r *Rule) { r.Operations = []string{"mkdir"} }), "rules[0].operations[0]"},
		{"an empty operation beside a star", good(func(r *Rule) { r.Operations = []string{"*", ""} }), "rules[0].operations[1]"},
		{"no callers", good(func(r *Rule) { r.Callers = nil }), "rules[0].callers"},
		{"a caller that would be everybody", good(func(r *Rule) { r.Callers = []CallerPattern{{}} }), "rules[0].callers[0]"},
		{"an assurance that would be everybody", good(func(r *Rule) { r.Callers = []CallerPattern{{Assurance: "process"}} }), "rules[0].callers[0]"},
		{"a user by name", good(func(r *Rule) { r.Callers = []CallerPattern{{User: `NT AUTHORITY\SYSTEM`}} }), "rules[0].callers[0]"},
		{"a star for a user", good(func(r *Rule) { r.Callers = []CallerPattern{{User: "*"}} }), "rules[0].callers[0]"},
		{"half a SID", good(func(r *Rule) { r.Callers = []CallerPattern{{User: "S-1-5"}} }), "rules[0].callers[0]"},
		{"a SID with a leading zero", good(func(r *Rule) { r.Callers = []CallerPattern{{User: "S-1-5-018"}} }), "rules[0].callers[0]"},
		{"a uid that is no number", good(func(r *Rule) { r.Callers = []CallerPattern{{User: "uid:root"}} }), "rules[0].callers[0]"},
		{"a relative exe", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: "driver.exe"}} }), "rules[0].callers[0]"},
		{"an exe relative to a drive", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: "C:driver.exe"}} }), "rules[0].callers[0]"},
		{"a whole drive", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: `C:\*`}} }), "rules[0].callers[0]"},
		{"the whole root", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: "/*"}} }), "rules[0].callers[0]"},
		{"a star in the middle of an exe", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: `C:\*\driver.exe`}} }), "rules[0].callers[0]"},
		{"a star within a segment", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: `C:\dir\dri*`}} }), "rules[0].callers[0]"},
		{"dots in an exe", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: `C:\dir\..\driver.exe`}} }), "rules[0].callers[0]"},
		{"mixed separators", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: `C:\dir/*`}} }), "rules[0].callers[0]"},
		{"an exe with too little assurance", good(func(r *Rule) { r.Callers = []CallerPattern{{Exe: driver, Assurance: "sid"}} }), "rules[0].callers[0]"},
		{"an assurance nobody has heard of", good(func(r *Rule) { r.Callers = []CallerPattern{{User: "S-1-5-18", Assurance: "Process"}} }), "rules[0].callers[0]"},
		{"the assurance of nothing", good(func(r *Rule) { r.Callers = []CallerPattern{{User: "S-1-5-18", Assurance: "none"}} }), "rules[0].callers[0]"},
		{"a mode nobody has heard of", Spec{Modes: []PipeMode{{"*", "logonly"}}}, "pipes[0].mode"},
		{"a mode for no pipe", Spec{Modes: []PipeMode{{"", access.LogOnly}}}, "pipes[0].pipe"},
		{"two modes for one pattern", Spec{Modes: []PipeMode{{"*", access.LogOnly}, {"*", access.Enforce}}}, "pipes[1].pipe"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policy, err := New(tt.spec)
			var faults Faults
			if !errors.As(err, &faults) || policy != nil {
				t.Fatalf("got %v, %v, want faults and no policy", policy, err)
			}
			if faults[0].Field != tt.field {
				t.Errorf("fault at %s, want %s: %v", faults[0].Field, tt.field, err)
			}
		})
	}
}

func TestNewReportsEveryFault(t *testing.T) {
	_, err := New(Spec{
		Modes: []PipeMode{{"nothing", "Sometimes"}},
		Rules: []Rule{{Name: "", Pipes: []string{"x", "*", "y"}, Operations: []string{"a", "B"}, Callers: []CallerPattern{{}, {User: "me", Exe: "you"}}}},
	})
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 9 {
		t.Errorf("got %d faults, want 9:\n%v", len(faults), err)
	}
}

func TestCheckRefusesNamesThatDoNotExist(t *testing.T) {
	known := []access.API{{Group: "filesystem", Version: "v1", Operations: []string{"Mkdir", "CreateSymlink"}}, {Group: "filesystem", Version: "v1alpha1", Operations: []string{"Mkdir", "CreateSymlink"}}, {Group: "volume", Version: "v1", Operations: []string{"MountVolume"}}}
	system := []CallerPattern{{User: "S-1-5-18"}}
	policy, err := New(Spec{
		Modes: []PipeMode{{"disk-v1", access.LogOnly}, {"*", access.Enforce}},
		Rules: []Rule{
			{Name: "good", Pipes: []string{"*"}, Operations: []string{"Mkdir", "MountVolume", "*"}, Callers: system},
			{Name: "no such pipe", Pipes: []string{"filesystem-v1", "filesystem-v7"}, Operations: []string{"Mkdir"}, Callers: system},
			{Name: "older name", Pipes: []string{"filesystem-*"}, Operations: []string{"LinkPath", "Mkdir"}, Callers: system},
			{Name: "other group's name", Pipes: []string{"volume-*"}, Operations: []string{"Mkdir"}, Callers: system},
			{Name: "system by star", Pipes: []string{"*-v1"}, Operations: []string{"StopService"}, Callers: system},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var faults Faults
	if !errors.As(policy.Check(known), &faults) {
		t.Fatal("no faults")
	}
	want := []string{"pipes[0].pipe", "rules[1].pipes[1]", "rules[2].operations[0]", "rules[3].operations[0]", "rules[4].operations[0]"}
	var got []string
	for _, f := range faults {
		got = append(got, f.Field)
	}
	if len(got) != len(want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("fault %d is at %s, want %s", i, got[i], want[i])
		}
	}
	if err := DenyAll().Check(nil); err != nil {
		t.Errorf("DenyAll: %v", err)
	}
}

func TestRevisionFollowsContent(t *testing.T) {
	a, _ := New(spec)
	b, _ := New(spec)
	changed := spec.clone()
	changed.Rules[0].Callers[0].User = "S-1-5-19"
	c, err := New(changed)
	if err != nil {
		t.Fatal(err)
	}
	if a.Revision() != b.Revision() || a.Revision() == c.Revision() || c.Revision() == DenyAll().Revision() {
		t.Errorf("revisions %s, %s, %s, %s", a.Revision(), b.Revision(), c.Revision(), DenyAll().Revision())
	}
}

func TestPolicyDoesNotFollowItsSpec(t *testing.T) {
	own := spec.clone()
	policy, err := New(own)
	if err != nil {
		t.Fatal(err)
	}
	own.Rules[0].Operations[0] = "Rmdir"
	own.Rules[0].Callers[0] = CallerPattern{}
	if policy.Decide(request("filesystem-v1", "Rmdir", "process", "S-1-5-18", driver)).Allowed {
		t.Error("a change of the spec after New allows a call")
	}
}
