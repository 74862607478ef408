package aclcmd

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// aclFile has a rule for a driver of a pod, one for a process of the node, a profile and a forwarded pipe.
const aclFile = `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  pipes: [{pipe: volume-v1beta1, mode: LogOnly}]
  rules:
    - name: driver
      pipes: ["filesystem-*"]
      operations: [CreateSymlink, Mkdir]
      paths: ['C:\var\lib\kubelet\pods']
      limits: {connections: 4, callsPerSecond: 20}
      callers: [{serviceAccount: team-a/node, container: driver}]
    - name: host
      pipes: ["filesystem-*", '\\.\pipe\guarded']
      operations: [PathExists, /a.B/*]
      callers: [{user: S-1-5-18, exe: 'C:\agent, inc\x.exe'}]
    - name: late
      pipes: [filesystem-v1]
      operations: [Mkdir]
      callers: [{serviceAccount: team-a/node}]
  profiles: [smb]
forward: [{pipe: guarded, to: unguarded}]
`

func writeACL(t *testing.T, text string) string {
	t.Helper()
	return clitest.Write(t, t.TempDir(), "proxy.yaml", text)
}

func TestACLCheck(t *testing.T) {
	got := execute(t, "", "acl", "check", writeACL(t, aclFile))
	if got.Code != cli.ExitYes || !strings.Contains(got.Out, "in order: 5 rules, those of 1 profiles among them, 1 modes LogOnly, 2 warnings, revision sha256:") {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.Out, "warning: ") || !strings.Contains(got.Out, ":4:11: acl.pipes[0]: volume-v1beta1 is in mode LogOnly") || !strings.Contains(got.Out, ":21:11: forward[0]: calls are passed on") {
		t.Errorf("warnings: %s", got.Out)
	}
	sample := execute(t, "", "acl", "check", "../../../../config/samples/proxy.yaml")
	if sample.Code != cli.ExitYes {
		t.Errorf("the sample: %+v", sample)
	}
	var report checkReport
	stdin := execute(t, aclFile, "acl", "check", "-o", "json", "-")
	if err := json.Unmarshal([]byte(stdin.Out), &report); err != nil {
		t.Fatal(err)
	}
	if report.Schema != "pipeguard.dev/acl-check/v1" || !report.OK || report.Rules != 5 || report.Profiles != 1 || report.LogOnly != 1 || len(report.Warnings) != 2 || report.Faults == nil || report.Hints == nil {
		t.Errorf("%+v", report)
	}
}

func TestACLCheckNamesFaults(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		want     []string
	}{
		"an older name of an operation": {"CreateSymlink", "LinkPath", []string{":8:20: acl.rules[0].operations[0]", "hint: acl.rules[0].operations[0]: LinkPath of an older API version is CreateSymlink in the newest"}},
		"a pipe that there is not":      {"[filesystem-v1]", "[filesystem-v7]", []string{":17:15: acl.rules[2].pipes[0]"}},
		"a key that there is not":       {"container: driver", "containers: driver", []string{"line 11", "containers"}},
		"a namespace in capitals":       {"team-a/node, container", "Team-A/node, container", []string{":11:17: acl.rules[0].callers[0]", "namespace"}},
		"two faults":                    {"[Mkdir]", "[mkdir, rmdir]", []string{"operations[0]", "operations[1]"}},
		"accounts for no pipe":          {"forward:", "pipes: [{pipe: disk-v9, containerUser: true}]\nforward:", []string{":21:16: pipes[0].pipe"}},
		"an unknown profile":            {"[smb]", "[cifs]", []string{":20:14: acl.profiles[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeACL(t, strings.Replace(aclFile, tt.from, tt.to, 1))
			got := execute(t, "", "acl", "check", file)
			if got.Code != cli.ExitNo || strings.Contains(got.Out, "in order") {
				t.Errorf("exit code %d, want 1: %s%s", got.Code, got.Out, got.ErrOut)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.Out, want) {
					t.Errorf("%q does not say %q", got.Out, want)
				}
			}
			explained := execute(t, "", "acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Mkdir")
			if explained.Code != cli.ExitBadInput {
				t.Errorf("explain takes the file: %+v", explained)
			}
		})
	}
}

func TestACLExplain(t *testing.T) {
	file := writeACL(t, aclFile)
	const path = `C:\var\lib\kubelet\pods\x`
	driver := "assurance=pod,serviceAccount=team-a/node,container=driver"
	tests := []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"an older method is its operation", []string{"--pipe", "filesystem-v1beta1", "--method", "LinkPath", "--caller", driver, "--path", path, "--path", path + "2"}, cli.ExitYes,
			[]string{"CreateSymlink on filesystem-v1beta1 is allowed: allowed by rule driver", "limits: 4 connections, 20 calls per second", "driver", "decides", "callers[0] agrees", "no "}},
		{"the newest name on an older pipe", []string{"--pipe", "csi-proxy-filesystem-v1beta1", "--method", "CreateSymlink", "--caller", driver, "--path", path, "--path", path}, cli.ExitYes, []string{"rule driver"}},
		{"a full method name", []string{"--pipe", `\\.\pipe\csi-proxy-filesystem-v1`, "--method", "/v1.Filesystem/Mkdir", "--caller", driver, "--path", path}, cli.ExitYes, []string{"Mkdir on filesystem-v1 is allowed", "covers"}},
		{"a comma in a value", []string{"--pipe", "filesystem-v1", "--method", "PathExists", "--caller", `user=S-1-5-18,exe=C:\agent, inc\x.exe`}, cli.ExitYes, []string{"allowed by rule host"}},
		{"a forwarded pipe", []string{"--pipe", `\\.\pipe\guarded`, "--method", "/a.B/C", "--caller", `user=S-1-5-18`, "--caller", `exe=C:\agent, inc\x.exe`}, cli.ExitYes, []string{"allowed by rule host"}},
		{"a profile", []string{"--pipe", "smb-v1", "--method", "RemoveSmbGlobalMapping", "--caller", "serviceAccount=kube-system/csi-smb-node-sa,container=smb"}, cli.ExitYes, []string{"smb@kube-system/csi-smb-node-sa:rest"}},
		{"a mode that lets it pass", []string{"--pipe", "volume-v1beta1", "--method", "FormatVolume"}, cli.ExitYes, []string{"would be denied, and passes because the pipe is in mode LogOnly"}},

		{"one end of a link elsewhere", []string{"--pipe", "filesystem-v1beta1", "--method", "LinkPath", "--caller", driver, "--path", path, "--path", `C:\Windows`}, cli.ExitNo,
			[]string{"is denied: rule driver allows CreateSymlink to this caller, but", "is not within its paths"}},
		{"a sidecar", []string{"--pipe", "filesystem-v1beta1", "--method", "Mkdir", "--caller", "serviceAccount=team-a/node,container=other", "--path", path}, cli.ExitNo, []string{`container is "other", not "driver"`}},
		{"a namespace that begins alike", []string{"--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "serviceAccount=team-ab/node,container=driver", "--path", path}, cli.ExitNo, []string{`namespace is "team-ab", not "team-a"`}},
		{"a service account that is not known", []string{"--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "namespace=team-a,container=driver", "--path", path}, cli.ExitNo, []string{"serviceAccount is not known"}},
		{"nobody", []string{"--pipe", "filesystem-v1", "--method", "Mkdir"}, cli.ExitNo, []string{"the caller is not identified"}},
		{"a method of an upstream", []string{"--pipe", "filesystem-v1", "--method", "/v1.Filesystem/New", "--caller", driver}, cli.ExitNo, []string{"no rule for this pipe allows /v1.Filesystem/New"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := execute(t, "", append([]string{"acl", "explain", file}, tt.args...)...)
			if got.Code != tt.code {
				t.Errorf("exit code %d, want %d", got.Code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.Out, want) {
					t.Errorf("does not say %q:\n%s%s", want, got.Out, got.ErrOut)
				}
			}
		})
	}
}

func TestACLExplainInJSON(t *testing.T) {
	got := execute(t, aclFile, "acl", "explain", "-", "-o", "json", "--pipe", "filesystem-v1", "--method", "Mkdir", "--path", `C:\x`,
		"--caller", "namespace=team-a,serviceAccount=node,container=driver,hostProcess=true,token=true,image=r.io/a:v1,pod=p")
	var r explainReport
	if err := json.Unmarshal([]byte(got.Out), &r); err != nil {
		t.Fatal(err, got)
	}
	caller := explainedCaller{Assurance: "pod", Namespace: "team-a", ServiceAccount: "node", Pod: "p", Container: "driver", Image: "r.io/a:v1", HostProcess: true, Token: true}
	if got.Code != cli.ExitYes || !r.Allowed || r.Effect != access.Allow || r.Mode != access.Enforce || r.Rule != "late" || r.Request.Caller != caller || len(r.Rules) != 5 ||
		!strings.HasPrefix(r.Rules[0].Why, "paths: ") || !r.Rules[2].Decides || r.Schema != "pipeguard.dev/acl-explain/v1" || r.Permits == nil {
		t.Errorf("%+v", r)
	}
}

// recordedSymlink is the intent of a call as the proxy records it, of everything that is known about its caller.
func recordedSymlink(id string, change func(*audit.Event)) audit.Event {
	e := audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageRequestReceived, ID: id,
		Who: &audit.Who{
			Assurance: "pod", Process: &audit.WhoProcess{PID: 7, Exe: `C:\driver.exe`}, User: &audit.WhoUser{SID: "S-1-5-93-2-1"},
			Pod:       &audit.WhoPod{Namespace: "team-a", Name: "p", UID: "u", ServiceAccount: "node"},
			Container: &audit.WhoContainer{ID: "c0ffee", Name: "driver", Image: "r.io/a:v1", HostProcess: true}, Token: true,
		},
		What: &audit.What{
			Pipe: "csi-proxy-filesystem-v1beta1", Group: "filesystem", Version: "v1beta1", Method: "CreateSymlink", FullMethod: "/v1beta1.Filesystem/LinkPath",
			Targets: []audit.Target{{Kind: "path", Value: `C:\var\lib\kubelet\pods\a`}, {Kind: "path", Value: `C:\var\lib\kubelet\pods\b`}},
		},
		Decision: &audit.Decision{Effect: audit.EffectAllow, Rule: "driver", Policy: &audit.Policy{Name: "acl", Revision: "1"}},
	}
	if change != nil {
		change(&e)
	}
	return e
}

// A record tells the list all that the call did.
func TestACLAsksAgainWhatWasRecorded(t *testing.T) {
	file := writeACL(t, aclFile)
	records := clitest.Stream(t,
		recordedSymlink("whole", nil),
		recordedSymlink("bare", func(e *audit.Event) { e.Who.Container = nil }),
		recordedSymlink("sidecar", func(e *audit.Event) { e.Who.Container.Name = "sidecar" }),
		recordedSymlink("outside", func(e *audit.Event) { e.What.Targets[1].Value = `C:\Windows` }),
		recordedSymlink("half", func(e *audit.Event) { e.What.Targets = e.What.Targets[:1] }),
		recordedSymlink("process", func(e *audit.Event) { e.Who.Assurance = "process" }),
		recordedSymlink("bundle", func(e *audit.Event) { e.Decision.Policy = &audit.Policy{Name: "bundle", Bundle: 7} }),
		recordedSymlink("cut", func(e *audit.Event) { e.What.Targets[1] = audit.Target{Kind: "cut", Value: "[9 entries cut]"} }),
		recordedSymlink("without token", func(e *audit.Event) { e.Who.Token = false }),
		recordedSymlink("long", func(e *audit.Event) { e.What.Params = json.RawMessage(`{"path":"` + strings.Repeat("x", 1025) + `"}`) }),
		recordedSymlink("short", func(e *audit.Event) { e.What.Params = json.RawMessage(`"[9 bytes cut]"`) }),
		recordedSymlink("unknown", func(e *audit.Event) { e.What.Method = "" }),
	)
	for _, tt := range []struct {
		id, caller string
		code       int
		want       string
	}{
		{"whole", "", cli.ExitYes, "allowed by rule driver"},
		{"bundle", "", cli.ExitYes, "note: this call was decided by a bundle, revision 7"},
		{"long", "", cli.ExitYes, "the request policy is asked next, and refuses: PN910: "},
		{"short", "", cli.ExitYes, "this record does not tell enough for that: the record was shortened"},
		{"bare", "container=driver", cli.ExitYes, "allowed by rule driver"},
		{"process", "assurance=pod", cli.ExitYes, "allowed by rule driver"},
		{"bare", "", cli.ExitNo, `container is not known, and must be "driver"`},
		{"sidecar", "", cli.ExitNo, `container is "sidecar", not "driver"`},
		{"outside", "", cli.ExitNo, `is not within its paths`},
		{"half", "", cli.ExitNo, "paths"},
		{"process", "", cli.ExitNo, `assurance is "process", and must be pod`},
		{"whole", "assurance=process", cli.ExitNo, "assurance"},
		{"whole", "serviceAccount=team-b/node", cli.ExitNo, `namespace is "team-b"`},
		{"cut", "", cli.ExitBadInput, "was shortened"},
		{"unknown", "", cli.ExitBadInput, `no request "unknown" whose method is known`},
		{"nowhere", "", cli.ExitBadInput, `no request "nowhere"`},
	} {
		args := []string{"acl", "explain", file, "--from-audit", records, "--id", tt.id}
		if tt.caller != "" {
			args = append(args, "--caller", tt.caller)
		}
		if got := execute(t, "", args...); got.Code != tt.code || !strings.Contains(got.Out+got.ErrOut, tt.want) {
			t.Errorf("%s %s: %+v, want %q", tt.id, tt.caller, got, tt.want)
		}
	}
	var r explainReport
	got := execute(t, "", "acl", "check", file, "-o", "json", "--from-audit", records, "--id", "whole", "--caller", "token=false")
	if err := json.Unmarshal([]byte(got.Out), &r); err != nil {
		t.Fatal(err, got)
	}
	want := explainedCaller{
		Assurance: "pod", User: "S-1-5-93-2-1", Exe: `C:\driver.exe`, Namespace: "team-a", ServiceAccount: "node", Pod: "p", Container: "driver", Image: "r.io/a:v1", HostProcess: true,
	}
	if r.Request.Caller != want {
		t.Errorf("%+v, want %+v", r.Request.Caller, want)
	}
	withToken := writeACL(t, strings.Replace(aclFile, "container: driver}", "container: driver, token: true}", 1))
	for id, code := range map[string]int{"whole": cli.ExitYes, "without token": cli.ExitNo} {
		if got := execute(t, "", "acl", "explain", withToken, "--from-audit", records, "--id", id); got.Code != code {
			t.Errorf("a rule that asks for a token, %s: %+v", id, got)
		}
	}
}

func TestACLCheckAnswersACall(t *testing.T) {
	file := writeACL(t, aclFile)
	call := []string{"acl", "check", file, "--pipe", "filesystem-v1", "--method", "Mkdir", "--path", `C:\var\lib\kubelet\pods\x`, "--caller"}
	got := execute(t, "", append(call, "serviceAccount=team-a/node,container=driver")...)
	if got.Code != cli.ExitYes || !strings.HasPrefix(got.Out, "Mkdir on filesystem-v1 is allowed: allowed by rule driver\n") || strings.Contains(got.Out, "RESULT") || strings.Contains(got.Out, "in order") {
		t.Errorf("%+v", got)
	}
	if got := execute(t, "", append(call, "serviceAccount=team-b/node")...); got.Code != cli.ExitNo || !strings.Contains(got.Out, "is denied: ") {
		t.Errorf("%+v", got)
	}
	bad := writeACL(t, strings.Replace(aclFile, "CreateSymlink", "LinkPath", 1))
	if got := execute(t, "", "acl", "check", bad, "--pipe", "filesystem-v1", "--method", "Mkdir"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "LinkPath of an older API version is CreateSymlink") {
		t.Errorf("a list with a fault: %+v", got)
	}
	bundled := writeACL(t, aclFile+"bundle: {pool: windows, keys: 'C:\\k.pub', file: 'C:\\b.tar.gz'}\n")
	if got := execute(t, "", "acl", "check", bundled, "--pipe", "filesystem-v1", "--method", "Mkdir"); got.Code != cli.ExitNo || !strings.Contains(got.Out, "note: on a pipe that the bundle's PipePolicies guard") {
		t.Errorf("beside a bundle: %+v", got)
	}
	open := strings.Replace(aclFile, "operations: [CreateSymlink, Mkdir]\n      paths: ['C:\\var\\lib\\kubelet\\pods']", "operations: [\"*\"]", 1)
	open = strings.Replace(open, `pipes: ["filesystem-*"]`, `pipes: ["volume-v1"]`, 1)
	format := []string{"--pipe", "volume-v1", "--method", "FormatVolume", "--caller", "serviceAccount=team-a/node,container=driver"}
	if got := execute(t, "", append([]string{"acl", "check", writeACL(t, open)}, format...)...); got.Code != cli.ExitYes || !strings.Contains(got.Out, "note: the request policy is asked next, and refuses: PN004: ") {
		t.Errorf("what the request policy refuses: %+v", got)
	}
	named := strings.Replace(open, `operations: ["*"]`, `operations: [FormatVolume, "*"]`, 1) + "requestPolicy: {modules: 'C:\\none'}\n"
	if got := execute(t, "", append([]string{"acl", "check", writeACL(t, named)}, format...)...); got.Code != cli.ExitYes || strings.Contains(got.Out, "PN004") || !strings.Contains(got.Out, `its modules in C:\none could not be read`) {
		t.Errorf("what it does not: %+v", got)
	}
	for text, want := range map[string]bool{open: false, named: true} {
		var r explainReport
		got := execute(t, text, append([]string{"acl", "explain", "-", "-o", "json"}, format...)...)
		if err := json.Unmarshal([]byte(got.Out), &r); err != nil || got.Code != cli.ExitYes {
			t.Fatal(err, got)
		}
		why := ""
		for _, rule := range r.Rules {
			if rule.Names != (want && rule.Decides) {
				t.Errorf("%+v", rule)
			}
			if rule.Decides {
				why = rule.Why
			}
		}
		if r.Named != want || strings.HasSuffix(why, "; no rule names this caller for FormatVolume") == want {
			t.Errorf("named %v: %+v", want, r)
		}
	}
	for _, alone := range [][]string{{"--pipe", "filesystem-v1"}, {"--method", "Mkdir"}, {"--caller", "user=S-1-5-18"}, {"--id", "x"}, {"--path", "x"}} {
		if got := execute(t, "", append([]string{"acl", "check", file}, alone...)...); got.Code != cli.ExitBadInput {
			t.Errorf("%q alone: %+v", alone, got)
		}
	}
}

func TestBadACLCommandLines(t *testing.T) {
	file := writeACL(t, aclFile)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no command":                {[]string{"acl"}, "name a command"},
		"check without a file":      {[]string{"acl", "check"}, "name a configuration of a proxy"},
		"a missing file":            {[]string{"acl", "check", "missing.yaml"}, "missing.yaml"},
		"a directory":               {[]string{"acl", "check", t.TempDir()}, "is a directory"},
		"an unknown format":         {[]string{"acl", "check", "-o", "yaml", file}, "must be table, text or json"},
		"explain without a request": {[]string{"acl", "explain", file}, "name a pipe with --pipe and a method with --method"},
		"explain without a method":  {[]string{"acl", "explain", file, "--pipe", "filesystem-v1"}, "--method"},
		"an unknown pipe":           {[]string{"acl", "explain", file, "--pipe", "filesystem-v9", "--method", "Mkdir"}, `no pipe "filesystem-v9"`},
		"an unknown method":         {[]string{"acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Format"}, `has no method "Format"`},
		"an older method elsewhere": {[]string{"acl", "explain", file, "--pipe", "filesystem-v1", "--method", "LinkPath"}, `has no method "LinkPath"`},
		"an unknown key":            {[]string{"acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "sa=x"}, "the keys are"},
		"a key twice":               {[]string{"acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "pod=x,pod=y"}, "twice"},
		"a word for a bool":         {[]string{"acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "token=maybe"}, "true or false"},
		"an unknown assurance":      {[]string{"acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "assurance=Pod"}, "want none, sid"},
		"two namespaces":            {[]string{"acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "namespace=a,serviceAccount=b/c"}, "not of namespace"},
		"an id without a file":      {[]string{"acl", "explain", file, "--id", "x"}, "--id needs --from-audit"},
		"a file without an id":      {[]string{"acl", "explain", file, "--from-audit", "x"}, "needs the --id"},
		"a record and a pipe":       {[]string{"acl", "explain", file, "--from-audit", "x", "--id", "y", "--pipe", "filesystem-v1"}, "leave them out"},
		"missing records":           {[]string{"acl", "explain", file, "--from-audit", "missing.jsonl", "--id", "y"}, "missing.jsonl"},
		"standard input twice":      {[]string{"acl", "explain", "-", "--from-audit", "-", "--id", "y"}, "one file only"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := execute(t, aclFile, c.args...); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, c.want) {
				t.Errorf("exit code %d, standard error %q; want 2 and %q", got.Code, got.ErrOut, c.want)
			}
		})
	}
}

func TestACLOutputIsInert(t *testing.T) {
	got := execute(t, "", "acl", "explain", writeACL(t, strings.Replace(aclFile, "name: late", `name: "la\u202ete\x1b[2J"`, 1)),
		"--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "namespace=a\x1bb", "--path", "C:\\\u202e")
	if bytes.ContainsAny([]byte(got.Out+got.ErrOut), "\x1b\u202e") {
		t.Errorf("%q", got.Out)
	}
}

// A share is asked for as the proxy would, however it is spelled.
func TestAShareIsExplainedAsTheProxySpellsIt(t *testing.T) {
	file := writeACL(t, `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
    - name: files
      pipes: ["smb-*"]
      operations: [RemoveSmbGlobalMapping]
      callers: [{namespace: team-a, serviceAccount: driver}]
      shares: ['\\files.example\data']
`)
	for share, want := range map[string]int{
		`\\files.example\data`: cli.ExitYes, `\\FILES.example\Data`: cli.ExitYes, `\\files.example\data\sub`: cli.ExitYes, `\\files.example\data\`: cli.ExitYes, `//files.example/data`: cli.ExitYes,
		`\\files.example\\data`: cli.ExitYes, `\\files.example\data2`: cli.ExitNo, `\\evil\data`: cli.ExitNo, `files.example\data`: cli.ExitNo,
	} {
		got := execute(t, "", "acl", "explain", file, "--pipe", "smb-v1", "--method", "RemoveSmbGlobalMapping", "--share", share, "--caller", "namespace=team-a,serviceAccount=driver")
		if got.Code != want {
			t.Errorf("%s: %+v", share, got)
		}
	}
}

func TestACLReadsADirectoryOfSegments(t *testing.T) {
	file, dir := writeACL(t, aclFile), filepath.Join(t.TempDir(), "log")
	clitest.Segments(t, dir, recordedSymlink("call", nil))
	for _, command := range []string{"explain", "check"} {
		if got := execute(t, "", "acl", command, file, "--from-audit", dir, "--id", "call"); got.Code != cli.ExitYes || !strings.Contains(got.Out, "allowed by rule driver") {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := execute(t, "", "acl", "check", file, "--from-audit", dir, "--id", "nobody"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, `holds no request "nobody"`) {
		t.Errorf("no such call: %+v", got)
	}
}
