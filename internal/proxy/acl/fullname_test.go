package acl

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

const other = `\\.\pipe\other-Server.v1`

// forwarding has rules for pipes with full names beside rules for the node API.
var forwarding = Spec{
	Modes: []PipeMode{{"*", access.Enforce}, {"disk-v1", access.LogOnly}, {`\\.\pipe\open`, access.LogOnly}},
	Rules: []Rule{
		{Name: "one", Pipes: []string{other}, Operations: []string{"/pkg.v1.Service/Get", "/pkg.v1.Watch/*"}, Callers: []CallerPattern{{User: "S-1-5-18"}}},
		{Name: "all of it", Pipes: []string{other}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-19"}}},
		{Name: "all of the node API", Pipes: []string{"*", "system-*", "iscsi-*"}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-20"}}},
		{Name: "newer", Pipes: []string{"disk-*", "volume-v1"}, Operations: []string{"*", "/v1.Disk/New", "/v9.Volume/*"}, Callers: []CallerPattern{{User: "S-1-5-21-1"}}},
	},
}

func TestFullNamesAndMethods(t *testing.T) {
	policy, err := New(forwarding)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name                     string
		group, version, op, user string
		rule                     string // empty: denied
	}{
		{"a method by its name", other, "", "/pkg.v1.Service/Get", "S-1-5-18", "one"},
		{"a method by its service", other, "", "/pkg.v1.Watch/Anything_9", "S-1-5-18", "one"},
		{"the case of a pipe does not count", `\\.\pipe\OTHER-server.V1`, "", "/pkg.v1.Service/Get", "S-1-5-18", "one"},
		{"a star covers every method of a pipe with a full name", other, "", "/x.Y/Z", "S-1-5-19", "all of it"},
		{"an unknown method of the node access.API by its name", "disk", "v1", "/v1.Disk/New", "S-1-5-21-1", "newer"},
		{"and by its service", "volume", "v1", "/v9.Volume/Shrink", "S-1-5-21-1", "newer"},
		{"a star beside method names covers operations", "disk", "v1", "Rescan", "S-1-5-21-1", "newer"},

		{"another method of the service", other, "", "/pkg.v1.Service/Set", "S-1-5-18", ""},
		{"methods mind case", other, "", "/pkg.v1.Service/get", "S-1-5-18", ""},
		{"services mind case", other, "", "/pkg.v1.watch/Get", "S-1-5-18", ""},
		{"a service that only begins alike", other, "", "/pkg.v1.Watcher/Get", "S-1-5-18", ""},
		{"a service within the service", other, "", "/pkg.v1.Watch/Get/More", "S-1-5-18", ""},
		{"a method with a slash at its end", other, "", "/pkg.v1.Watch/Get/", "S-1-5-18", ""},
		{"a service without a method", other, "", "/pkg.v1.Watch/", "S-1-5-18", ""},
		{"the pattern itself as a method", other, "", "/pkg.v1.Watch/*", "S-1-5-18", ""},
		{"the star itself as an operation", other, "", "*", "S-1-5-18", ""},
		{"out of the service by dots", other, "", "/pkg.v1.Watch/..", "S-1-5-18", ""},
		{"out of the service by dots and a slash", other, "", "/pkg.v1.Watch/../pkg.v1.Service", "S-1-5-18", ""},
		{"escapes", other, "", "/pkg.v1.Watch/%2e%2e", "S-1-5-18", ""},
		{"a query", other, "", "/pkg.v1.Watch/Get?x", "S-1-5-18", ""},
		{"a line end", other, "", "/pkg.v1.Watch/Get\n", "S-1-5-18", ""},
		{"no slash first", other, "", "pkg.v1.Watch/Get", "S-1-5-18", ""},
		{"a name without slashes", other, "", "Get", "S-1-5-19", ""},
		{"a star does not cover what is no method name", other, "", "/x.Y/Z/..", "S-1-5-19", ""},
		{"a star does not cover an empty service", other, "", "//Z", "S-1-5-19", ""},
		{"a star does not cover an empty word of a service", other, "", "/x..Y/Z", "S-1-5-19", ""},
		{"another pipe", `\\.\pipe\other-Server.v2`, "", "/pkg.v1.Service/Get", "S-1-5-18", ""},
		{"a pipe with more at its end", other + "x", "", "/pkg.v1.Service/Get", "S-1-5-18", ""},
		{"a pipe of another machine", `\\host\pipe\other-Server.v1`, "", "/pkg.v1.Service/Get", "S-1-5-18", ""},
		{"a letter that only Unicode folds to ASCII", "\\\\.\\pipe\\other-\u017ferver.v1", "", "/pkg.v1.Service/Get", "S-1-5-18", ""},
		{"a star for pipes covers no full name", other, "", "/pkg.v1.Service/Get", "S-1-5-20", ""},
		{"nor with a version", other, "v1", "/pkg.v1.Service/Get", "S-1-5-20", ""},
		{"a group that is called like the pipe", "other-server.v1", "", "/pkg.v1.Service/Get", "S-1-5-18", ""},
		{"a star for operations covers no unknown method of the node API", "disk", "v1", "/v1.Disk/New", "S-1-5-20", ""},
		{"nor one of system", "system", "v1alpha1", "/v1alpha1.System/Reboot", "S-1-5-20", ""},
		{"nor beside other method names", "disk", "v1", "/v1.Disk/Newer", "S-1-5-21-1", ""},
		{"a known operation by its method name", "disk", "v1", "/v1.Disk/Rescan", "S-1-5-21-1", ""},
		{"an operation with a slash in it", "disk", "v1", "Rescan/", "S-1-5-20", ""},
		{"LogOnly does not let an unknown method pass", "disk", "v1", "/v1.Disk/Newest", "S-1-1-0", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := policy.Decide(access.Call{Group: tt.group, Version: tt.version, Operation: tt.op, Caller: caller.Caller{Assurance: "process", User: caller.User{SID: tt.user}, Process: caller.Process{Exe: ""}}})
			if d.Rule != tt.rule || d.Allowed != (tt.rule != "") {
				t.Errorf("got %+v, want rule %q", d, tt.rule)
			}
		})
	}
	open := policy.Decide(access.Call{Group: `\\.\pipe\open`, Version: "", Operation: "/a.B/C", Caller: caller.Caller{Assurance: "none", User: caller.User{SID: ""}, Process: caller.Process{Exe: ""}}})
	if !open.Allowed || open.Effect != access.Deny || open.Mode != access.LogOnly {
		t.Errorf("a forwarded pipe in LogOnly: %+v", open)
	}
	for method, want := range map[string]bool{
		"/pkg.v1.Service/Get": true, "/pkg.v1.Watch/*": false, "/pkg.v1.Watch/Get": false, "*": false, "/v1.Disk/New": false, "": false,
	} {
		if policy.Names(other, "", method) != want {
			t.Errorf("Names(%q) is %v", method, !want)
		}
	}
}

func TestNewRefusesFullNamesMethodsAndPermits(t *testing.T) {
	rule := func(change func(*Rule)) Spec {
		r := Rule{Name: "r", Pipes: []string{other}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-18"}}}
		change(&r)
		return Spec{Rules: []Rule{r}}
	}
	type test struct {
		name, field string
		spec        Spec
	}
	var tests []test
	for name, pipe := range map[string]string{
		"nothing after the prefix": `\\.\pipe\`, "a star": `\\.\pipe\*`, "a star within": `\\.\pipe\a*b`, "a directory": `\\.\pipe\a\b`,
		"a slash": `\\.\pipe\a/b`, "the parent": `\\.\pipe\..`, "a dot at the end": `\\.\pipe\a.`, "a space": `\\.\pipe\a b`,
		"a letter beyond ASCII": "\\\\.\\pipe\\\u212a", "two separators": `\\.\pipe\\a`, "another machine's": `\\host\pipe\a`, "long": `\\.\pipe\` + strings.Repeat("a", 201),
		"of the node API": `\\.\pipe\csi-proxy-disk-v1`, "of the node access.API in capitals": `\\.\pipe\CSI-Proxy-disk-v1`, "doubled": `\\.\\pipe\\a-b`,
	} {
		tests = append(tests, test{"pipe: " + name, "rules[0].pipes[0]", rule(func(r *Rule) { r.Pipes = []string{pipe} })})
	}
	for name, method := range map[string]string{
		"no method": "/a.B/", "no service": "//C", "a star for a service": "/*/C", "a star within": "/a.B/C*", "a star for all": "/*", "no slash first": "a.B/C",
		"a path": "/a/b/C", "dots": "/a.B/..", "dots for a service": "/../C", "an escape": "/a.B/%43", "a service that ends in a dot": "/a./C",
		"a space": "/a.B/C ", "a letter beyond ASCII": "/a.B/\u212a",
	} {
		tests = append(tests, test{"method: " + name, "rules[0].operations[0]", rule(func(r *Rule) { r.Operations = []string{method} })})
	}
	for name, permit := range map[string]string{"a star": "*", "lower case": "reformat", "a space": "Reformat ", "nothing": "", "an operation": "FormatVolume"} {
		tests = append(tests, test{"permit: " + name, "rules[0].permits[1]", rule(func(r *Rule) { r.Permits = []string{access.SystemDisk, permit} })})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			policy, err := New(tt.spec)
			var faults Faults
			if !errors.As(err, &faults) || policy != nil || faults[0].Field != tt.field {
				t.Errorf("got %v, %v, want a fault at %s", policy, err, tt.field)
			}
		})
	}
}

func TestPermitsComeFromTheRuleThatAllows(t *testing.T) {
	callers := func(user string) []CallerPattern { return []CallerPattern{{User: user}} }
	policy, err := New(Spec{
		Modes: []PipeMode{{"disk-*", access.LogOnly}},
		Rules: []Rule{
			{Name: "plain", Pipes: []string{"volume-v1"}, Operations: []string{"MountVolume"}, Callers: callers("S-1-5-18")},
			{Name: "format", Pipes: []string{"volume-*"}, Operations: []string{"*"}, Callers: callers("S-1-5-18"), Permits: []string{access.Reformat}},
			{Name: "system", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: callers("S-1-5-18"), Permits: []string{access.SystemDisk, access.Reformat}},
			{Name: "star", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: callers("S-1-5-19")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, pipe, op, user string
		want                 []string
	}{
		{"the first rule that allows decides", "volume-v1", "FormatVolume", "S-1-5-18", []string{access.Reformat}},
		{"a later rule gives what it says", "disk-v1", "PartitionDisk", "S-1-5-18", []string{access.SystemDisk, access.Reformat}},
		{"a rule without permits is not added to by a later one", "volume-v1", "MountVolume", "S-1-5-18", nil},
		{"a star for operations permits nothing", "volume-v1", "FormatVolume", "S-1-5-19", nil},
		{"a denied call has no permits", "volume-v1", "FormatVolume", "S-1-1-0", nil},
		{"nor one that LogOnly lets pass", "disk-v1", "PartitionDisk", "S-1-1-0", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := policy.Decide(request(tt.pipe, tt.op, "process", tt.user, ""))
			if diff := cmp.Diff(tt.want, d.Permits); diff != "" {
				t.Errorf("%+v: %s", d, diff)
			}
		})
	}
}

func TestCheckKnowsForwardedPipes(t *testing.T) {
	known := []access.API{{Group: "disk", Version: "v1", Operations: []string{"Rescan"}}, {Group: other}}
	callers := []CallerPattern{{User: "S-1-5-18"}}
	policy, err := New(Spec{
		Modes: []PipeMode{{`\\.\pipe\OTHER-SERVER.V1`, access.LogOnly}, {`\\.\pipe\nobody`, access.Enforce}},
		Rules: []Rule{
			{Name: "methods", Pipes: []string{other, "disk-v1"}, Operations: []string{"/a.B/C", "/a.B/*", "*", "Rescan"}, Callers: callers},
			{Name: "a pipe that nobody serves", Pipes: []string{`\\.\pipe\other`}, Operations: []string{"*"}, Callers: callers},
			{Name: "an operation on a forwarded pipe", Pipes: []string{other}, Operations: []string{"Rescan"}, Callers: callers},
			{Name: "an operation that neither has", Pipes: []string{other, "*"}, Operations: []string{"Format"}, Callers: callers},
			{Name: "the star stands for the node access.API alone", Pipes: []string{"*-v2"}, Operations: []string{"*"}, Callers: callers},
			{Name: "a known operation by a method's name", Pipes: []string{"disk-v1"}, Operations: []string{"/v1.Disk/New", "/v1.Disk/Rescan", "/v1.Disk/*"}, Callers: callers},
			{Name: "a method of that name on another server", Pipes: []string{other}, Operations: []string{"/v1.Disk/Rescan"}, Callers: callers},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var faults Faults
	if !errors.As(policy.Check(known), &faults) {
		t.Fatal("no faults")
	}
	want := []string{"pipes[1].pipe", "rules[1].pipes[0]", "rules[2].operations[0]", "rules[3].operations[0]", "rules[4].pipes[0]", "rules[5].operations[1]"}
	var got []string
	for _, f := range faults {
		got = append(got, f.Field)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff, faults)
	}
	if text := fmt.Sprint(faults); !strings.Contains(text, "there are disk-v1, "+other) {
		t.Errorf("the fault does not say what there is: %s", text)
	}
}

func TestSameExe(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`C:\csi\proxy.exe`, `c:\CSI\Proxy.EXE`, true},
		{"/opt/x", "/opt/x", true},
		{"/opt/x", "/opt/X", false},
		{`C:\csi\proxy.exe`, "C:\\c\u017fi\\proxy.exe", false}, // a directory that a user may make, and Unicode folds to the other
		{`C:\csi\proxy.exe`, `C:\csi\proxy.exe:x`, false},
		{`C:\csi\proxy.exe`, `\Device\HarddiskVolume1\csi\proxy.exe`, false},
		{`C:\csi\proxy.exe`, `C:\csi\..\csi\proxy.exe`, false},
		{"proxy.exe", "proxy.exe", false},
		{"", "", false},
	} {
		if access.SameExe(tt.a, tt.b) != tt.want || access.SameExe(tt.b, tt.a) != tt.want {
			t.Errorf("%q and %q: want %v", tt.a, tt.b, tt.want)
		}
	}
}
