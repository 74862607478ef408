package acl

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func TestPathsConfine(t *testing.T) {
	policy, err := New(Spec{Rules: []Rule{{
		Name: "r", Pipes: []string{"filesystem-*", "volume-*", "smb-*", "disk-*"}, Operations: []string{"*"},
		Callers: []CallerPattern{{Namespace: "kube-system"}}, Paths: []string{`C:\var\lib\kubelet\plugins\driver`, `C:\var\lib\kubelet\pods\`},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	const dir = `C:\var\lib\kubelet\plugins\driver`
	tests := []struct {
		name, pipe, operation string
		paths                 []string
		want                  bool
	}{
		{"the directory itself", "filesystem-v1", "Mkdir", []string{dir}, true},
		{"a path in it", "filesystem-v1", "Mkdir", []string{dir + `\a\b`}, true},
		{"with a separator at its end", "filesystem-v1", "Mkdir", []string{dir + `\a\`}, true},
		{"two separators", "filesystem-v1", "Mkdir", []string{`C:\\var\lib\\kubelet\plugins\driver\\a`}, true},
		{"in other case", "filesystem-v1", "Mkdir", []string{`c:\VAR\lib\Kubelet\PODS\x`}, true},
		{"both ends of a link", "filesystem-v1", "CreateSymlink", []string{dir + `\a`, `C:\var\lib\kubelet\pods\b`}, true},
		{"the local path of an SMB mapping", "smb-v1", "NewSmbGlobalMapping", []string{dir + `\a`}, true},

		{"a look at the directory itself", "filesystem-v1", "IsSymlink", []string{dir}, true},
		{"a link to the directory itself", "filesystem-v1", "CreateSymlink", []string{dir, dir + `\a`}, true},
		{"the volume at the directory itself", "volume-v1", "GetVolumeIDFromTargetPath", []string{dir}, true},
		{"removal of what lies in it", "filesystem-v1", "Rmdir", []string{dir + `\a`}, true},

		{"removal of the directory itself", "filesystem-v1", "Rmdir", []string{dir}, false},
		{"removal in other case and with separators", "filesystem-v1", "Rmdir", []string{`c:\VAR\lib\\Kubelet\PODS\\`}, false},
		{"emptying the directory itself", "filesystem-v1", "RmdirContents", []string{dir + `\`}, false},
		{"a link in place of the directory itself", "filesystem-v1", "CreateSymlink", []string{dir + `\a`, dir}, false},
		{"a mount over the directory itself", "volume-v1", "MountVolume", []string{dir}, false},
		{"an unmount of the directory itself", "volume-v1", "UnmountVolume", []string{dir}, false},
		{"a share in place of the directory itself", "smb-v1", "NewSmbGlobalMapping", []string{dir}, false},
		{"a name that begins alike", "filesystem-v1", "Mkdir", []string{dir + `-evil\a`}, false},
		{"a name that begins alike after a directory with a separator", "filesystem-v1", "Mkdir", []string{`C:\var\lib\kubelet\pods-evil`}, false},
		{"the directory above", "filesystem-v1", "Rmdir", []string{`C:\var\lib\kubelet\plugins`}, false},
		{"another drive", "filesystem-v1", "Mkdir", []string{`D` + dir[1:]}, false},
		{"out by dots", "filesystem-v1", "Mkdir", []string{dir + `\..\other`}, false},
		{"in by dots", "filesystem-v1", "Mkdir", []string{`C:\x\..\var\lib\kubelet\plugins\driver`}, false},
		{"the other separator", "filesystem-v1", "Mkdir", []string{"C:/var/lib/kubelet/plugins/driver/a"}, false},
		{"two separators and dots", "filesystem-v1", "Mkdir", []string{dir + `\\..\\..\x`}, false},
		{"two separators at the beginning", "filesystem-v1", "Mkdir", []string{`\\` + dir}, false},
		{"a device path", "filesystem-v1", "Mkdir", []string{`\\?\` + dir}, false},
		{"a share", "filesystem-v1", "Mkdir", []string{`\\localhost\C$\var\lib\kubelet\pods`}, false},
		{"a stream", "filesystem-v1", "Mkdir", []string{dir + `\a:b`}, false},
		{"a short name", "filesystem-v1", "Mkdir", []string{`C:\var\lib\kubelet\plugins\DRIVER~1`}, false},
		{"a dot at a segment's end", "filesystem-v1", "Mkdir", []string{dir + `.\a`}, false},
		{"the Kelvin sign", "filesystem-v1", "Mkdir", []string{"C:\\var\\lib\\\u212aubelet\\pods\\a"}, false},
		{"the long s", "filesystem-v1", "Mkdir", []string{"C:\\var\\lib\\kubelet\\pod\u017f\\a"}, false},
		{"a relative path", "filesystem-v1", "Mkdir", []string{`plugins\driver`}, false},
		{"an empty path", "filesystem-v1", "Mkdir", []string{""}, false},
		{"no path", "filesystem-v1", "Mkdir", nil, false},
		{"a link whose target is outside", "filesystem-v1", "CreateSymlink", []string{dir + `\a`, `C:\Windows`}, false},
		{"a link whose source is outside", "filesystem-v1", "CreateSymlink", []string{`C:\Windows`, dir + `\a`}, false},
		{"a link with one end", "filesystem-v1", "CreateSymlink", []string{dir + `\a`}, false},
		{"a link with an empty end", "filesystem-v1", "CreateSymlink", []string{dir + `\a`, ""}, false},
		{"an SMB mapping without a local path", "smb-v1", "NewSmbGlobalMapping", nil, false},
		{"an SMB mapping to elsewhere", "smb-v1", "NewSmbGlobalMapping", []string{`C:\Windows\x`}, false},
		{"an operation without paths", "volume-v1", "FormatVolume", nil, false},
		{"an operation without paths, which is said to have one", "disk-v1", "Rescan", []string{dir}, false},
		{"a path that is too long", "filesystem-v1", "Mkdir", []string{dir + strings.Repeat(`\a`, 200)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := request(tt.pipe, tt.operation, "pod", "", "")
			r.Caller, r.Paths = podCaller, tt.paths
			if d := policy.Decide(r); d.Allowed != tt.want {
				t.Errorf("allowed %v, want %v: %s", d.Allowed, tt.want, d.Reason)
			} else if !d.Allowed && !strings.HasPrefix(d.Reason, "rule r allows "+tt.operation+" to this caller, but ") {
				t.Errorf("reason %q", d.Reason)
			}
		})
	}
}

func TestPathsDoNotReachForwardedPipes(t *testing.T) {
	policy, err := New(Spec{Rules: []Rule{{
		Name: "r", Pipes: []string{other}, Operations: []string{"*"}, Callers: []CallerPattern{{Namespace: "kube-system"}}, Paths: []string{`C:\a`},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"/a.B/C", "Mkdir"} {
		if policy.Decide(access.Call{Group: other, Operation: method, Caller: podCaller, Paths: []string{`C:\a\b`}}).Allowed {
			t.Errorf("%s is allowed", method)
		}
	}
}

func TestNewRefusesPathsAndLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Rule)
		field  string
	}{
		"no paths":                      {func(r *Rule) { r.Paths = []string{} }, "rules[0].paths"},
		"an empty path":                 {func(r *Rule) { r.Paths = []string{""} }, "rules[0].paths[0]"},
		"a drive":                       {func(r *Rule) { r.Paths = []string{`C:\a`, `C:\`} }, "rules[0].paths[1]"},
		"a star":                        {func(r *Rule) { r.Paths = []string{`C:\a\*`} }, "rules[0].paths[0]"},
		"a relative path":               {func(r *Rule) { r.Paths = []string{`a\b`} }, "rules[0].paths[0]"},
		"the other separator":           {func(r *Rule) { r.Paths = []string{"C:/a"} }, "rules[0].paths[0]"},
		"dots":                          {func(r *Rule) { r.Paths = []string{`C:\a\..\b`} }, "rules[0].paths[0]"},
		"a Linux path":                  {func(r *Rule) { r.Paths = []string{"/var/lib/kubelet"} }, "rules[0].paths[0]"},
		"a share":                       {func(r *Rule) { r.Paths = []string{`\\server\share`} }, "rules[0].paths[0]"},
		"negative connections":          {func(r *Rule) { r.Limits.Connections = -1 }, "rules[0].limits.connections"},
		"connections without end":       {func(r *Rule) { r.Limits.Connections = 5000 }, "rules[0].limits.connections"},
		"negative calls":                {func(r *Rule) { r.Limits.CallsPerSecond = -1 }, "rules[0].limits.callsPerSecond"},
		"a burst that bounds nothing":   {func(r *Rule) { r.Limits.Burst = 5 }, "rules[0].limits.burst"},
		"a burst without end":           {func(r *Rule) { r.Limits = access.Limits{CallsPerSecond: 1, Burst: 2_000_000} }, "rules[0].limits.burst"},
		"a rate that is a typing error": {func(r *Rule) { r.Limits.CallsPerSecond = 10_000_000 }, "rules[0].limits.callsPerSecond"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Rule{Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-18"}}}
			tt.change(&r)
			_, err := New(Spec{Rules: []Rule{r}})
			if err == nil || !strings.HasPrefix(err.Error(), tt.field+": ") {
				t.Errorf("got %v, want a fault of %s", err, tt.field)
			}
		})
	}
}

func TestLimitsOfTheRuleGoBeforeThoseOfAll(t *testing.T) {
	system := []CallerPattern{{User: "S-1-5-18"}}
	policy, err := New(Spec{
		Limits: access.Limits{Connections: 9, CallsPerSecond: 90, Burst: 99},
		Rules: []Rule{
			{Name: "own", Pipes: []string{"disk-v1"}, Operations: []string{"Rescan"}, Callers: system, Limits: access.Limits{Connections: 2, CallsPerSecond: 5}},
			{Name: "none", Pipes: []string{"disk-*"}, Operations: []string{"*"}, Callers: system},
			{Name: "some", Pipes: []string{"volume-*"}, Operations: []string{"*"}, Callers: system, Limits: access.Limits{Connections: 3}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pipe, operation string
		want            access.Limits
	}{
		{"disk-v1", "Rescan", access.Limits{Connections: 2, CallsPerSecond: 5}}, // not with the burst of all
		{"disk-v1", "PartitionDisk", access.Limits{Connections: 9, CallsPerSecond: 90, Burst: 99}},
		{"volume-v1", "FormatVolume", access.Limits{Connections: 3, CallsPerSecond: 90, Burst: 99}},
		{"smb-v1", "RemoveSmbGlobalMapping", access.Limits{Connections: 9, CallsPerSecond: 90, Burst: 99}}, // denied
	} {
		if d := policy.Decide(request(tt.pipe, tt.operation, "sid", "S-1-5-18", "")); d.Limits != tt.want {
			t.Errorf("%s %s: %+v, want %+v", tt.pipe, tt.operation, d.Limits, tt.want)
		}
	}
	for _, tt := range []struct {
		group, version, user string
		want                 int
	}{{"disk", "v1", "S-1-5-18", 2}, {"disk", "v1beta1", "S-1-5-18", 9}, {"volume", "v1", "S-1-5-18", 3}, {"disk", "v1", "S-1-5-19", 9}} {
		if got := policy.Connections(tt.group, tt.version, caller.Caller{Assurance: "sid", User: caller.User{SID: tt.user}}); got != tt.want {
			t.Errorf("%+v: %d connections", tt, got)
		}
	}
}

func TestARuleThatHoldsButForItsPathsIsNamedWhereverItStands(t *testing.T) {
	confined := Rule{Name: "confined", Pipes: []string{"filesystem-v1"}, Operations: []string{"Mkdir"}, Paths: []string{`C:\k`},
		Callers: []CallerPattern{{ServiceAccount: "a/node"}}}
	other := Rule{Name: "other", Pipes: []string{"filesystem-v1"}, Operations: []string{"Mkdir"}, Callers: []CallerPattern{{ServiceAccount: "b/node"}}}
	want := `rule confined allows Mkdir to this caller, but "D:\\x" is not within its paths`
	for _, list := range [][]Rule{{confined, other}, {other, confined}, {confined}} {
		p, err := New(Spec{Rules: list})
		if err != nil {
			t.Fatal(err)
		}
		r := access.Call{Group: "filesystem", Version: "v1", Operation: "Mkdir", Paths: []string{`D:\x`},
			Caller: caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "a", ServiceAccount: "node"}}}
		if d := p.Decide(r); d.Allowed || d.Reason != want {
			t.Errorf("%v: %s", list, d.Reason)
		}
		r.Caller.Pod.Namespace = "c"
		if d := p.Decide(r); d.Allowed || d.Reason != "no rule that allows Mkdir here names this caller" {
			t.Errorf("%v: a stranger: %s", list, d.Reason)
		}
	}
}
