package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/core/access"
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

// executeACL runs the command line beside the others.
func executeACL(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	root := newRoot()
	if cmd, _, err := root.Find([]string{"acl"}); err != nil || cmd == root {
		root.AddCommand(newACL())
	}
	var out, errOut bytes.Buffer
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&out)
	root.SetErr(&errOut)
	cmd, err := root.ExecuteContextC(t.Context())
	code, message := verdict(err)
	if message != "" {
		errOut.WriteString(cmd.CommandPath() + ": " + inert.Text(message))
	}
	return result{code, out.String(), errOut.String()}
}

func writeACL(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestACLCheck(t *testing.T) {
	got := executeACL(t, "", "acl", "check", writeACL(t, aclFile))
	if got.code != exitYes || !strings.Contains(got.out, "in order: 5 rules, those of 1 profiles among them, 1 modes LogOnly, 2 warnings, revision sha256:") {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(got.out, "warning: ") || !strings.Contains(got.out, ":4:11: acl.pipes[0]: volume-v1beta1 is in mode LogOnly") || !strings.Contains(got.out, ":21:11: forward[0]: calls are passed on") {
		t.Errorf("warnings: %s", got.out)
	}
	sample := executeACL(t, "", "acl", "check", "../../config/samples/proxy.yaml")
	if sample.code != exitYes {
		t.Errorf("the sample: %+v", sample)
	}
	var report aclCheckReport
	stdin := executeACL(t, aclFile, "acl", "check", "-o", "json", "-")
	if err := json.Unmarshal([]byte(stdin.out), &report); err != nil {
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
			got := executeACL(t, "", "acl", "check", file)
			if got.code != exitNo || strings.Contains(got.out, "in order") {
				t.Errorf("exit code %d, want 1: %s%s", got.code, got.out, got.errOut)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q does not say %q", got.out, want)
				}
			}
			explained := executeACL(t, "", "acl", "explain", file, "--pipe", "filesystem-v1", "--method", "Mkdir")
			if explained.code != exitBadInput {
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
		{"an older method is its operation", []string{"--pipe", "filesystem-v1beta1", "--method", "LinkPath", "--caller", driver, "--path", path, "--path", path + "2"}, exitYes,
			[]string{"CreateSymlink on filesystem-v1beta1 is allowed: allowed by rule driver", "limits: 4 connections, 20 calls per second", "driver", "decides", "callers[0] agrees", "no "}},
		{"the newest name on an older pipe", []string{"--pipe", "csi-proxy-filesystem-v1beta1", "--method", "CreateSymlink", "--caller", driver, "--path", path, "--path", path}, exitYes, []string{"rule driver"}},
		{"a full method name", []string{"--pipe", `\\.\pipe\csi-proxy-filesystem-v1`, "--method", "/v1.Filesystem/Mkdir", "--caller", driver, "--path", path}, exitYes, []string{"Mkdir on filesystem-v1 is allowed", "covers"}},
		{"a comma in a value", []string{"--pipe", "filesystem-v1", "--method", "PathExists", "--caller", `user=S-1-5-18,exe=C:\agent, inc\x.exe`}, exitYes, []string{"allowed by rule host"}},
		{"a forwarded pipe", []string{"--pipe", `\\.\pipe\guarded`, "--method", "/a.B/C", "--caller", `user=S-1-5-18`, "--caller", `exe=C:\agent, inc\x.exe`}, exitYes, []string{"allowed by rule host"}},
		{"a profile", []string{"--pipe", "smb-v1", "--method", "RemoveSmbGlobalMapping", "--caller", "serviceAccount=kube-system/csi-smb-node-sa,container=smb"}, exitYes, []string{"smb@kube-system/csi-smb-node-sa:rest"}},
		{"a mode that lets it pass", []string{"--pipe", "volume-v1beta1", "--method", "FormatVolume"}, exitYes, []string{"would be denied, and passes because the pipe is in mode LogOnly"}},

		{"one end of a link elsewhere", []string{"--pipe", "filesystem-v1beta1", "--method", "LinkPath", "--caller", driver, "--path", path, "--path", `C:\Windows`}, exitNo,
			[]string{"is denied: rule driver allows CreateSymlink to this caller, but", "is not within its paths"}},
		{"a sidecar", []string{"--pipe", "filesystem-v1beta1", "--method", "Mkdir", "--caller", "serviceAccount=team-a/node,container=other", "--path", path}, exitNo, []string{`container is "other", not "driver"`}},
		{"a namespace that begins alike", []string{"--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "serviceAccount=team-ab/node,container=driver", "--path", path}, exitNo, []string{`namespace is "team-ab", not "team-a"`}},
		{"a service account that is not known", []string{"--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "namespace=team-a,container=driver", "--path", path}, exitNo, []string{"serviceAccount is not known"}},
		{"nobody", []string{"--pipe", "filesystem-v1", "--method", "Mkdir"}, exitNo, []string{"the caller is not identified"}},
		{"a method of an upstream", []string{"--pipe", "filesystem-v1", "--method", "/v1.Filesystem/New", "--caller", driver}, exitNo, []string{"no rule for this pipe allows /v1.Filesystem/New"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := executeACL(t, "", append([]string{"acl", "explain", file}, tt.args...)...)
			if got.code != tt.code {
				t.Errorf("exit code %d, want %d", got.code, tt.code)
			}
			for _, want := range tt.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("does not say %q:\n%s%s", want, got.out, got.errOut)
				}
			}
		})
	}
}

func TestACLExplainInJSON(t *testing.T) {
	got := executeACL(t, aclFile, "acl", "explain", "-", "-o", "json", "--pipe", "filesystem-v1", "--method", "Mkdir", "--path", `C:\x`,
		"--caller", "namespace=team-a,serviceAccount=node,container=driver,hostProcess=true,token=true,image=r.io/a:v1,pod=p")
	var r aclExplainReport
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatal(err, got)
	}
	caller := explainedCaller{Assurance: "pod", Namespace: "team-a", ServiceAccount: "node", Pod: "p", Container: "driver", Image: "r.io/a:v1", HostProcess: true, Token: true}
	if got.code != exitYes || !r.Allowed || r.Effect != access.Allow || r.Mode != access.Enforce || r.Rule != "late" || r.Request.Caller != caller || len(r.Rules) != 5 ||
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
	records := record(t,
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
		{"whole", "", exitYes, "allowed by rule driver"},
		{"bundle", "", exitYes, "note: this call was decided by a bundle, revision 7"},
		{"long", "", exitYes, "the request policy is asked next, and refuses: PN910: "},
		{"short", "", exitYes, "this record does not tell enough for that: the record was shortened"},
		{"bare", "container=driver", exitYes, "allowed by rule driver"},
		{"process", "assurance=pod", exitYes, "allowed by rule driver"},
		{"bare", "", exitNo, `container is not known, and must be "driver"`},
		{"sidecar", "", exitNo, `container is "sidecar", not "driver"`},
		{"outside", "", exitNo, `is not within its paths`},
		{"half", "", exitNo, "paths"},
		{"process", "", exitNo, `assurance is "process", and must be pod`},
		{"whole", "assurance=process", exitNo, "assurance"},
		{"whole", "serviceAccount=team-b/node", exitNo, `namespace is "team-b"`},
		{"cut", "", exitBadInput, "was shortened"},
		{"unknown", "", exitBadInput, `no request "unknown" whose method is known`},
		{"nowhere", "", exitBadInput, `no request "nowhere"`},
	} {
		args := []string{"acl", "explain", file, "--from-audit", records, "--id", tt.id}
		if tt.caller != "" {
			args = append(args, "--caller", tt.caller)
		}
		if got := executeACL(t, "", args...); got.code != tt.code || !strings.Contains(got.out+got.errOut, tt.want) {
			t.Errorf("%s %s: %+v, want %q", tt.id, tt.caller, got, tt.want)
		}
	}
	var r aclExplainReport
	got := executeACL(t, "", "acl", "check", file, "-o", "json", "--from-audit", records, "--id", "whole", "--caller", "token=false")
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatal(err, got)
	}
	want := explainedCaller{
		Assurance: "pod", User: "S-1-5-93-2-1", Exe: `C:\driver.exe`, Namespace: "team-a", ServiceAccount: "node", Pod: "p", Container: "driver", Image: "r.io/a:v1", HostProcess: true,
	}
	if r.Request.Caller != want {
		t.Errorf("%+v, want %+v", r.Request.Caller, want)
	}
	withToken := writeACL(t, strings.Replace(aclFile, "container: driver}", "container: driver, token: true}", 1))
	for id, code := range map[string]int{"whole": exitYes, "without token": exitNo} {
		if got := executeACL(t, "", "acl", "explain", withToken, "--from-audit", records, "--id", id); got.code != code {
			t.Errorf("a rule that asks for a token, %s: %+v", id, got)
		}
	}
}

func TestACLCheckAnswersACall(t *testing.T) {
	file := writeACL(t, aclFile)
	call := []string{"acl", "check", file, "--pipe", "filesystem-v1", "--method", "Mkdir", "--path", `C:\var\lib\kubelet\pods\x`, "--caller"}
	got := executeACL(t, "", append(call, "serviceAccount=team-a/node,container=driver")...)
	if got.code != exitYes || !strings.HasPrefix(got.out, "Mkdir on filesystem-v1 is allowed: allowed by rule driver\n") || strings.Contains(got.out, "RESULT") || strings.Contains(got.out, "in order") {
		t.Errorf("%+v", got)
	}
	if got := executeACL(t, "", append(call, "serviceAccount=team-b/node")...); got.code != exitNo || !strings.Contains(got.out, "is denied: ") {
		t.Errorf("%+v", got)
	}
	bad := writeACL(t, strings.Replace(aclFile, "CreateSymlink", "LinkPath", 1))
	if got := executeACL(t, "", "acl", "check", bad, "--pipe", "filesystem-v1", "--method", "Mkdir"); got.code != exitBadInput || !strings.Contains(got.errOut, "LinkPath of an older API version is CreateSymlink") {
		t.Errorf("a list with a fault: %+v", got)
	}
	bundled := writeACL(t, aclFile+"bundle: {pool: windows, keys: 'C:\\k.pub', file: 'C:\\b.tar.gz'}\n")
	if got := executeACL(t, "", "acl", "check", bundled, "--pipe", "filesystem-v1", "--method", "Mkdir"); got.code != exitNo || !strings.Contains(got.out, "note: on a pipe that the bundle's PipePolicies guard") {
		t.Errorf("beside a bundle: %+v", got)
	}
	open := strings.Replace(aclFile, "operations: [CreateSymlink, Mkdir]\n      paths: ['C:\\var\\lib\\kubelet\\pods']", "operations: [\"*\"]", 1)
	open = strings.Replace(open, `pipes: ["filesystem-*"]`, `pipes: ["volume-v1"]`, 1)
	format := []string{"--pipe", "volume-v1", "--method", "FormatVolume", "--caller", "serviceAccount=team-a/node,container=driver"}
	if got := executeACL(t, "", append([]string{"acl", "check", writeACL(t, open)}, format...)...); got.code != exitYes || !strings.Contains(got.out, "note: the request policy is asked next, and refuses: PN004: ") {
		t.Errorf("what the request policy refuses: %+v", got)
	}
	named := strings.Replace(open, `operations: ["*"]`, `operations: [FormatVolume, "*"]`, 1) + "requestPolicy: {modules: 'C:\\none'}\n"
	if got := executeACL(t, "", append([]string{"acl", "check", writeACL(t, named)}, format...)...); got.code != exitYes || strings.Contains(got.out, "PN004") || !strings.Contains(got.out, `its modules in C:\none could not be read`) {
		t.Errorf("what it does not: %+v", got)
	}
	for text, want := range map[string]bool{open: false, named: true} {
		var r aclExplainReport
		got := executeACL(t, text, append([]string{"acl", "explain", "-", "-o", "json"}, format...)...)
		if err := json.Unmarshal([]byte(got.out), &r); err != nil || got.code != exitYes {
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
		if got := executeACL(t, "", append([]string{"acl", "check", file}, alone...)...); got.code != exitBadInput {
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
			if got := executeACL(t, aclFile, c.args...); got.code != exitBadInput || !strings.Contains(got.errOut, c.want) {
				t.Errorf("exit code %d, standard error %q; want 2 and %q", got.code, got.errOut, c.want)
			}
		})
	}
}

func TestACLOutputIsInert(t *testing.T) {
	got := executeACL(t, "", "acl", "explain", writeACL(t, strings.Replace(aclFile, "name: late", `name: "la\u202ete\x1b[2J"`, 1)),
		"--pipe", "filesystem-v1", "--method", "Mkdir", "--caller", "namespace=a\x1bb", "--path", "C:\\\u202e")
	if bytes.ContainsAny([]byte(got.out+got.errOut), "\x1b\u202e") {
		t.Errorf("%q", got.out)
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
		`\\files.example\data`: exitYes, `\\FILES.example\Data`: exitYes, `\\files.example\data\sub`: exitYes, `\\files.example\data\`: exitYes, `//files.example/data`: exitYes,
		`\\files.example\\data`: exitYes, `\\files.example\data2`: exitNo, `\\evil\data`: exitNo, `files.example\data`: exitNo,
	} {
		got := executeACL(t, "", "acl", "explain", file, "--pipe", "smb-v1", "--method", "RemoveSmbGlobalMapping", "--share", share, "--caller", "namespace=team-a,serviceAccount=driver")
		if got.code != want {
			t.Errorf("%s: %+v", share, got)
		}
	}
}

// Whether a process is in a container decides who is named, and a record says it as the proxy knew it.
func TestWhoIsInDoubtIsNamedByNoTool(t *testing.T) {
	file := writeACL(t, `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
acl:
  rules:
    - name: agent
      pipes: ["volume-*"]
      operations: [FormatVolume]
      callers: [{user: S-1-5-18, exe: 'C:\agent.exe'}]
    - name: driver
      pipes: ["volume-*"]
      operations: [FormatVolume]
      callers: [{namespace: team-a, container: driver}]
`)
	called := func(id string, change func(*audit.Who)) audit.Event {
		return recordedSymlink(id, func(e *audit.Event) {
			e.Who = &audit.Who{Assurance: "process", Process: &audit.WhoProcess{PID: 7, Exe: `C:\agent.exe`}, User: &audit.WhoUser{SID: "S-1-5-18"}}
			e.What = &audit.What{
				Pipe: "csi-proxy-volume-v1", Group: "volume", Version: "v1", Method: "FormatVolume", FullMethod: "/v1.Volume/FormatVolume",
				Params: json.RawMessage(`{"volume_id":"x"}`), Targets: []audit.Target{{Kind: "volume", Value: "x"}},
			}
			change(e.Who)
		})
	}
	records := record(t,
		called("host", func(w *audit.Who) { w.Host = true }),
		called("alone", func(*audit.Who) {}), // without a runtime to ask
		called("doubt", func(w *audit.Who) { w.Doubt = "whether it is in a container: the runtime does not answer" }),
		called("pod", func(w *audit.Who) {
			w.Assurance, w.Doubt = "pod", "the pod's service account: nobody knows it"
			w.Pod, w.Container = &audit.WhoPod{Namespace: "team-a", Name: "p", UID: "u"}, &audit.WhoContainer{ID: "c0ffee", Name: "driver"}
		}),
	)
	explain := func(name string, want bool, args ...string) {
		var r aclExplainReport
		got := executeACL(t, "", append([]string{"acl", "explain", file, "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(got.out), &r); err != nil {
			t.Fatal(err, got)
		}
		if got.code != exitYes || r.Named != want || strings.Contains(got.out, "PN004") == want {
			t.Errorf("%s: %+v, want named %v", name, got, want)
		}
	}
	for id, want := range map[string]bool{"host": true, "alone": true, "doubt": false, "pod": true} {
		explain(id, want, "--from-audit", records, "--id", id)
		got := execute(t, "", "policy", "eval", "--from-audit", records, "--id", id, "--config", file)
		if strings.Contains(got.out, "deny by PN004") == want {
			t.Errorf("policy eval, %s: %+v", id, got)
		}
	}
	explain("a doubt that is set aside", true, "--from-audit", records, "--id", "doubt", "--caller", "doubt=false")
	for text, want := range map[string]bool{"": true, ",doubt=false": true, ",doubt=true": false} {
		explain("asked"+text, want, "--pipe", "volume-v1", "--method", "FormatVolume", "--caller", `user=S-1-5-18,exe=C:\agent.exe`+text)
	}
}
