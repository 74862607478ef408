package policycmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
	"github.com/pipeguard/pipeguard/policies/node"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// nodeCopy is a directory with the built-in policies of nodes and some of their tests: a policy of its own.
func nodeCopy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "node")
	if err := os.CopyFS(dir, node.FS()); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "examples"), node.Examples()); err != nil {
		t.Fatal(err)
	}
	clitest.KeepTests(t, dir, "decision_test.rego", "partition_disk_test.rego", "service_control_test.rego")
	return dir
}

// nodeStarter is what a new author of policies of nodes begins with.
func nodeStarter(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "node")
	if got := execute(t, "", "policy", "init", "--node", dir); got.Code != cli.ExitYes {
		t.Fatalf("init: %+v", got)
	}
	return dir
}

func TestInitWritesPoliciesOfNodesThatPassAllTools(t *testing.T) {
	dir := nodeStarter(t)
	for _, name := range []string{"working_hours.rego", "working_hours_test.rego", "input.schema.json", "examples"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, args := range [][]string{{"check", dir}, {"test", dir}, {"fmt", dir}, {"test", "-o", "json", dir}} {
		if got := execute(t, "", append([]string{"policy"}, args...)...); got.Code != cli.ExitYes || got.ErrOut != "" || strings.Contains(got.Out, "note:") {
			t.Errorf("%s: %+v", args[0], got)
		}
	}
}

// The tools say of an addition what a node would.
func TestAdditionsAreTestedBesideTheBuiltInPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		from, to, want string
	}{
		"a rule that refuses nothing": {"	not house_is_open\n", "	false\n", "failed: working_hours_test.rego"},
		"an hour too many":            {`hour < "17"`, `hour < "18"`, "test_the_night_is_closed"},
		"a rule that names everybody": {"house_is_open if {", "is_named if {", "data.pipeguard.node.is_named belongs to the base policy"},
		"a function of the net":       {`hour < "17"`, "hour < \"17\"\n\thttp.send({})", "not available to policies"},
		"a variable that is nowhere":  {`hour < "17"`, `hours < "17"`, "working_hours.rego:22:"},
		"a code that is built in":     {"code: HOUSE1", "code: PN004", "PN004"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := nodeStarter(t)
			clitest.Edit(t, dir, "working_hours.rego", c.from, c.to)
			got := execute(t, "", "policy", "test", dir)
			if got.Code != cli.ExitNo || got.ErrOut != "" || !strings.Contains(got.Out, c.want) {
				t.Errorf("%+v; want %q", got, c.want)
			}
			if asked := execute(t, "", "policy", "eval", "--policy", dir, "--input", filepath.Join(dir, "examples", "driver", "input.json")); asked.Code != cli.ExitBadInput {
				t.Errorf("it is asked: %+v", asked)
			}
		})
	}
	dir := nodeStarter(t)
	clitest.Edit(t, dir, "working_hours.rego", "house_is_open if {", "is_named if {")
	var report checkReport
	got := execute(t, "", "policy", "check", "-o", "json", dir)
	if err := json.Unmarshal([]byte(got.Out), &report); err != nil || got.Code != cli.ExitNo || len(report.Problems) != 1 || report.Problems[0].Code != "addition" {
		t.Errorf("%v, %+v", err, got)
	}
}

// A copy of the built-in policy works, and is nothing that a node takes: that is said.
func TestAPolicyOfItsOwnIsNamedAsOne(t *testing.T) {
	for _, command := range []string{"check", "test"} {
		if got := execute(t, "", "policy", command, nodeCopy(t)); got.Code != cli.ExitYes || !strings.Contains(got.Out, "note: this request policy defines its own decision") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

func TestPolicyTestAsksOfNodesWhatTheProxyDoes(t *testing.T) {
	for name, c := range map[string]struct {
		file, from, to, want string
	}{
		"a test that fails":      {"service_control.rego", "	not is_named\n", "", "failed: service_control_test.rego"},
		"a service for anybody":  {"service_control_test.rego", "package pipeguard.node_test", "package pipeguard.node_test\n\ntest_more if true", "invariants: passed"},
		"a function of the net":  {"input.rego", "default is_named := false", "default is_named := false\n\nx := http.send({})", "not available to policies"},
		"a decision of any kind": {"decision.rego", `decision := {"allowed": allowed, "findings": findings}`, "decision := true", "not compiled"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := nodeCopy(t)
			clitest.Edit(t, dir, c.file, c.from, c.to)
			got := execute(t, "", "policy", "test", dir)
			if want := name != "a service for anybody"; (got.Code == cli.ExitNo) != want || !strings.Contains(got.Out, c.want) {
				t.Errorf("%+v", got)
			}
		})
	}
	dir := t.TempDir()
	clitest.Write(t, dir, "open.rego", "package pipeguard.node\n\ndecision := {\"allowed\": true, \"findings\": []}\n")
	clitest.Write(t, dir, "open_test.rego", "package pipeguard.node_test\n\ntest_open if true\n")
	if got := execute(t, "", "policy", "test", dir); got.Code != cli.ExitNo || !strings.Contains(got.Out, "a service is not stopped for an unknown caller") {
		t.Errorf("a policy that allows everything: %+v", got)
	}
}

func TestADirectoryMayHoldBothKinds(t *testing.T) {
	dir := clitest.Policies(t)
	if err := os.Rename(nodeCopy(t), filepath.Join(dir, "node")); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"check", "test"} {
		if got := execute(t, "", "policy", command, dir); got.Code != cli.ExitYes || got.ErrOut != "" {
			t.Errorf("%s: %+v", command, got)
		}
	}
	if got := execute(t, "", "review", "--policy-dir", dir, "-f", "../reviewcmd/testdata/review/ordinary.yaml"); got.Code != cli.ExitYes {
		t.Errorf("review: %+v", got)
	}
	clitest.Edit(t, dir, "node/partition_disk.rego", "	not is_named\n", "")
	got := execute(t, "", "policy", "test", dir)
	if got.Code != cli.ExitNo || !strings.Contains(got.Out, "failed: node/partition_disk_test.rego") || !strings.Contains(got.Out, "invariants: skipped") {
		t.Errorf("a fault in the policies of nodes: %+v", got)
	}
	clitest.Write(t, dir, "node/bad.rego", "package pipeguard.node\n\nx := y\n")
	for _, command := range []string{"check", "test"} {
		if got := execute(t, "", "policy", command, dir); got.Code != cli.ExitNo || !strings.Contains(got.Out, "node/bad.rego:3:") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

const proxyHead = "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"

// stopRule is an access list with one rule for the caller of recordedLog.
func stopRule(operations, more string) string {
	return proxyHead + "acl: {rules: [{name: r, pipes: [\"system-*\"], operations: [" + operations + "], callers: [{serviceAccount: kube-system/driver}]" + more + "}]}\n"
}

// stopped is a call to stop a service, as it ended.
func stopped(decision *audit.Decision) *audit.Event {
	return &audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: "CALL1", Time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC),
		Who: &audit.Who{
			Assurance: "pod", Process: &audit.WhoProcess{PID: 7, Exe: `C:\driver.exe`}, User: &audit.WhoUser{SID: "S-1-5-93-2-1"},
			Pod: &audit.WhoPod{Namespace: "kube-system", Name: "driver-x", UID: "u", ServiceAccount: "driver"},
		},
		What: &audit.What{
			Pipe: "csi-proxy-system-v1alpha1", Group: "system", Version: "v1alpha1", Method: "StopService",
			FullMethod: "/v1alpha1.System/StopService", Params: json.RawMessage(`{"name":"MSiSCSI","force":false}`),
			Targets: []audit.Target{{Kind: "service", Value: "MSiSCSI"}},
		},
		Decision: decision,
		Outcome:  &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", LatencyUS: 1_000_000},
		Where:    &audit.Where{Node: "win-1"},
	}
}

// recordedLog is a log with that call.
func recordedLog(t *testing.T, decision *audit.Decision, change func(*audit.Event)) string {
	t.Helper()
	e := stopped(decision)
	if change != nil {
		change(e)
	}
	var text bytes.Buffer
	if _, err := audit.NewStream(&text).Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	return clitest.Write(t, t.TempDir(), "audit.jsonl", text.String())
}

func builtInRevision(t *testing.T) string {
	t.Helper()
	m, err := nodepolicy.Modules(nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := requestpolicy.New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Activate(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return s.Revision()
}

func TestPolicyEvalReplaysARecord(t *testing.T) {
	naming := []string{"--config", clitest.Write(t, t.TempDir(), "proxy.yaml", stopRule("StopService", ", services: [msiscsi]"))}
	const isSaidElsewhere = "note      who is named is said by the access list: --config or --bundle asks it"
	refused := &audit.Decision{Effect: audit.EffectDeny, Rule: "PN001", Reason: "r", Mode: "Enforce", Policy: &audit.Policy{Name: "request", Revision: builtInRevision(t)}}
	older := *refused
	older.Policy = &audit.Policy{Name: "request", Revision: "sha256:older"}
	otherRule := *refused
	otherRule.Rule = "PN002"
	allowed := &audit.Decision{Effect: audit.EffectAllow, Rule: "drivers", Reason: "r", Policy: &audit.Policy{Name: "acl", Revision: "1"}}
	ofBundle := *allowed
	ofBundle.Policy = &audit.Policy{Name: "bundle", Revision: "sha256:1", Bundle: 7}
	contain := func(e *audit.Event) {
		e.Who.Container, e.Who.Token = &audit.WhoContainer{ID: "c0ffee", Name: "plugin", Image: "registry.example/driver:1", HostProcess: true}, true
	}
	byList := &audit.Decision{Effect: audit.EffectDeny, Reason: "r", Policy: &audit.Policy{Name: "acl", Revision: "1"}}
	long := func(e *audit.Event) {
		e.What.Params = json.RawMessage(`{"name":"` + strings.Repeat("x", 1024) + `[9 bytes cut]","force":false}`)
	}
	for name, c := range map[string]struct {
		decision *audit.Decision
		change   func(*audit.Event)
		args     []string
		code     int
		want     []string
		without  string
	}{
		"the same":                 {refused, nil, nil, cli.ExitYes, []string{"now       deny by PN001: ", "recorded  deny by PN001: r", isSaidElsewhere}, "other policies"},
		"other policies, the same": {&older, nil, nil, cli.ExitYes, []string{"deny by PN001", "note      other policies were asked then: revision sha256:older"}, "DIFFERS"},
		"the caller is named now":  {refused, nil, naming, cli.ExitNo, []string{"now       allow", "DIFFERS   effect: recorded deny, now allow", "DIFFERS   rule: recorded PN001, now none"}, "note"},
		"another rule":             {&otherRule, nil, nil, cli.ExitNo, []string{"DIFFERS   rule: recorded PN002, now PN001"}, "effect:"},
		"it was allowed":           {allowed, nil, nil, cli.ExitNo, []string{"recorded  allow by drivers", "effect: recorded allow, now deny", "rule: recorded none, now PN001"}, ""},
		"it was and is allowed":    {allowed, nil, naming, cli.ExitYes, []string{"now       allow"}, "DIFFERS"},
		"the access list refused":  {byList, nil, nil, cli.ExitYes, []string{"the request policy was not asked about it"}, "DIFFERS"},
		"a text that is not shown": {allowed, long, naming, cli.ExitNo, []string{"deny by PN910", "request.name has more than 1024 bytes"}, ""},
		"the token came too late":  {&audit.Decision{Effect: audit.EffectDeny, Reason: "token: missing"}, nil, nil, cli.ExitYes, []string{"before its caller was looked up"}, "DIFFERS"},
		"the caller had left":      {&audit.Decision{Effect: audit.EffectDeny, Rule: "drivers", Reason: "r", Policy: allowed.Policy}, nil, nil, cli.ExitYes, []string{"rule drivers allowed this call"}, "DIFFERS"},
		"a bundle decided":         {&ofBundle, nil, naming, cli.ExitYes, []string{"the rules of a bundle decided then, revision 7", "--bundle"}, "DIFFERS"},
		"named, with the input":    {allowed, nil, append(naming, "-v"), cli.ExitYes, []string{`"named": true`}, "note"},
		"its targets are not all known": {allowed, func(e *audit.Event) {
			e.What.Targets = append(e.What.Targets, audit.Target{Kind: "cut", Value: "[9 entries cut]"})
		}, naming, cli.ExitNo, []string{"deny by PN001", "note      the record was shortened, so the access list cannot be asked who is named"}, ""},
		"with the input":               {refused, nil, []string{"-v"}, cli.ExitYes, []string{`"now": "2026-01-02T03:04:05Z"`, `"name": "MSiSCSI"`, `"node": "win-1"`, `"container": null`, `"token": false`}, ""},
		"with the container":           {refused, contain, []string{"-v"}, cli.ExitYes, []string{`"image": "registry.example/driver:1"`, `"hostProcess": true`, `"token": true`, `"named": false`}, "other policies"},
		"a control character is shown": {&audit.Decision{Effect: audit.EffectDeny, Rule: "PN001", Reason: "a\x1b[2J", Policy: refused.Policy}, nil, nil, cli.ExitYes, []string{"<U+001B>"}, "\x1b"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", append([]string{"policy", "eval", "--from-audit", recordedLog(t, c.decision, c.change), "--id", "CALL1"}, c.args...)...)
			if got.Code != c.code || got.ErrOut != "" {
				t.Errorf("%+v", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got.Out, want) {
					t.Errorf("%q is not in\n%s", want, got.Out)
				}
			}
			if c.without != "" && strings.Contains(got.Out, c.without) {
				t.Errorf("%q is in\n%s", c.without, got.Out)
			}
		})
	}
}

// The same record gives the same answer, to the byte.
func TestPolicyEvalIsDeterministic(t *testing.T) {
	log := recordedLog(t, &audit.Decision{Effect: audit.EffectAllow, Policy: &audit.Policy{Name: "acl", Revision: "1"}}, nil)
	args := []string{"policy", "eval", "-o", "json", "--from-audit", log, "--id", "CALL1"}
	first := execute(t, "", args...)
	var report struct {
		Schema      string
		Decision    map[string]any
		Recorded    map[string]any
		Differences []map[string]any
		Notes       []string
		Input       map[string]any
	}
	if err := json.Unmarshal([]byte(first.Out), &report); err != nil || first.Code != cli.ExitNo {
		t.Fatalf("%v: %+v", err, first)
	}
	if report.Schema != "pipeguard.dev/policy-eval/v1" || report.Decision["rule"] != "PN001" || len(report.Differences) != 2 || report.Input["operation"] != "StopService" || report.Recorded["effect"] != "allow" {
		t.Errorf("%+v", report)
	}
	for range 3 {
		if again := execute(t, "", args...); again != first {
			t.Errorf("%s\n%s", first.Out, again.Out)
		}
	}
}

func TestPolicyEvalAsksAboutAnInput(t *testing.T) {
	dir := nodeCopy(t)
	for name, want := range map[string]struct {
		code int
		rule string
	}{
		"driver": {cli.ExitYes, "now       allow"}, "service_control": {cli.ExitNo, "PN001"}, "partition_disk": {cli.ExitNo, "PN002"},
		"disk_offline": {cli.ExitNo, "PN003"}, "format_volume": {cli.ExitNo, "PN004"}, "input": {cli.ExitNo, "PN000"},
	} {
		file := filepath.Join(dir, "examples", name, "input.json")
		for _, args := range [][]string{{"--input", file}, {"--input", file, "--policy", dir}} {
			if got := execute(t, "", append([]string{"policy", "eval"}, args...)...); got.Code != want.code || !strings.Contains(got.Out, want.rule) || got.ErrOut != "" {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
	if got := execute(t, "{}", "policy", "eval", "--input", "-"); got.Code != cli.ExitNo || !strings.Contains(got.Out, "PN000") {
		t.Errorf("standard input: %+v", got)
	}
}

func TestPolicyEvalNamesWhatItCannotUse(t *testing.T) {
	decided := &audit.Decision{Effect: audit.EffectDeny, Policy: &audit.Policy{Name: "request", Revision: "1"}}
	log := recordedLog(t, decided, nil)
	admission, bad := clitest.Policies(t), nodeCopy(t)
	clitest.Edit(t, bad, "service_control.rego", "	not is_named\n", "")
	cut := recordedLog(t, decided, func(e *audit.Event) { e.What.Params = json.RawMessage(`"[1 bytes cut]"`) })
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":                        {nil, "name a recorded call with --from-audit"},
		"a file without an id":           {[]string{"--from-audit", log}, "--from-audit needs --id"},
		"an id without a file":           {[]string{"--id", "x"}, "name a recorded call"},
		"both":                           {[]string{"--from-audit", log, "--id", "CALL1", "--input", "x"}, "exclude each other"},
		"an id and an input":             {[]string{"--id", "CALL1", "--input", "x"}, "exclude each other"},
		"a missing log":                  {[]string{"--from-audit", "missing", "--id", "x"}, "missing"},
		"an unknown id":                  {[]string{"--from-audit", log, "--id", "CALL2"}, `holds no call "CALL2" that was decided`},
		"a log of another kind":          {[]string{"--from-audit", "command.go", "--id", "x"}, "lines are no records"},
		"a record that was shortened":    {[]string{"--from-audit", cut, "--id", "CALL1"}, "the record was shortened"},
		"a call that was not decided":    {[]string{"--from-audit", recordedLog(t, nil, nil), "--id", "CALL1"}, "that was decided"},
		"a missing input":                {[]string{"--input", "missing.json"}, "missing.json"},
		"an input that is no JSON":       {[]string{"--input", "command.go"}, "input command.go"},
		"an argument":                    {[]string{"x"}, `unexpected argument "x"`},
		"policies of admission":          {[]string{"--input", "x", "--policy", admission}, "holds no policies of nodes"},
		"policies that are not there":    {[]string{"--input", "x", "--policy", "missing"}, "missing"},
		"policies whose tests fail":      {[]string{"--input", "x", "--policy", bad}, "run policy tests"},
		"parameters":                     {[]string{"--input", "x", "--params", "x"}, "unknown flag: --params"},
		"an output of an unknown format": {[]string{"--input", "x", "-o", "yaml"}, "must be text or json"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, "", append([]string{"policy", "eval"}, c.args...)...)
			if got.Code != cli.ExitBadInput || got.Out != "" || !strings.Contains(got.ErrOut, c.want) {
				t.Errorf("%+v; want %q", got, c.want)
			}
		})
	}
	if got := execute(t, `{} {}`, "policy", "eval", "--input", "-"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "more text after the input") {
		t.Errorf("two inputs: %+v", got)
	}
	if got := execute(t, `"`+strings.Repeat("x", maxEvalInput)+`"`, "policy", "eval", "--input", "-"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "more than") {
		t.Errorf("a large input: %+v", got)
	}
	if got := execute(t, "", "review", "--policy-dir", nodeCopy(t), "-f", "../reviewcmd/testdata/review/ordinary.yaml"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "policies of nodes only") {
		t.Errorf("review: %+v", got)
	}
	if got := execute(t, "", "policy", "test", nodeCopy(t), "--policies", "../reviewcmd/testdata/review/policies.yaml"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "--policies goes with") {
		t.Errorf("objects with policies of nodes: %+v", got)
	}
	for _, command := range []string{"test", "check"} {
		if got := execute(t, "", "policy", command, nodeCopy(t), "--params", "x"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "--params goes with policies of admission") || !strings.Contains(got.ErrOut, "input.named") {
			t.Errorf("%s: parameters with policies of nodes: %+v", command, got)
		}
	}
}

// What a node decided is decided again from what the node has: its configuration, or its bundle.
func TestPolicyEvalAsksWhatTheNodeAsked(t *testing.T) {
	refused := &audit.Decision{Effect: audit.EffectDeny, Rule: "PN001", Reason: "r", Mode: "Enforce", Policy: &audit.Policy{Name: "request", Revision: "sha256:older"}}
	log := recordedLog(t, refused, func(e *audit.Event) { e.Who.Container = &audit.WhoContainer{ID: "c0ffee", Name: "plugin"} })
	rules := stopRule("StopService", "")
	modules := nodeStarter(t)
	clitest.Edit(t, modules, "working_hours.rego", `input.group == "volume"`, `input.group == "system"`)
	clitest.Edit(t, modules, "working_hours.rego", `input.operation == "FormatVolume"`, `input.operation == "StopService"`)
	clitest.Edit(t, modules, "working_hours.rego", `input.peer.pod.namespace == "team-a"`, `input.peer.container.name == "plugin"`)
	clitest.Edit(t, modules, "working_hours_test.rego", `"name": "driver", "image"`, `"name": "plugin", "image"`)
	clitest.Edit(t, modules, "working_hours_test.rego", `"group": "volume"`, `"group": "system"`)
	for _, old := range []string{`is_refused("team-a", "FormatVolume", now)`, `is_refused("team-a", "FormatVolume", "")`} {
		text, err := os.ReadFile(filepath.Join(modules, "working_hours_test.rego"))
		if err != nil {
			t.Fatal(err)
		}
		clitest.Write(t, modules, "working_hours_test.rego", strings.ReplaceAll(string(text), old, strings.Replace(old, "FormatVolume", "StopService", 1)))
	}
	clitest.Edit(t, modules, "working_hours_test.rego", `is_refused("team-b", "FormatVolume"`, `is_refused("team-b", "MountVolume"`)
	for name, c := range map[string]struct {
		config string
		args   []string
		code   int
		want   string
	}{
		"nobody is named":                  {proxyHead, nil, cli.ExitYes, "note      the access list that was asked denies this call, so the caller is not named: no rule names this pipe"},
		"a rule names the caller":          {rules, nil, cli.ExitNo, "now       allow"},
		"a rule names it for a service":    {stopRule("StopService", ", services: [MSISCSI]"), nil, cli.ExitNo, "now       allow"},
		"a rule names it for another":      {stopRule("StopService", ", services: [winrm]"), nil, cli.ExitYes, "deny by PN001"},
		"a rule allows everything":         {stopRule("'*'", ""), nil, cli.ExitYes, "deny by PN001"},
		"who is named, beside rules":       {rules + "requestPolicy: {named: {system: {}}}\n", nil, cli.ExitBadInput, "requestPolicy.named"},
		"its modules refuse":               {rules + "requestPolicy: {modules: '" + modules + "'}\n", nil, cli.ExitNo, "now       deny by HOUSE1"},
		"modules beside it refuse":         {rules, []string{"--policy", modules}, cli.ExitNo, "now       deny by HOUSE1"},
		"its modules are not there":        {rules + "requestPolicy: {modules: '" + modules + "-missing'}\n", nil, cli.ExitBadInput, "-missing"},
		"a configuration with a fault":     {rules + "x: y\n", nil, cli.ExitBadInput, "proxy.yaml"},
		"a rule of a pipe that is nowhere": {strings.Replace(rules, "system-*", "system-v9", 1), nil, cli.ExitBadInput, "system-v9"},
		"a bundle, too":                    {rules, []string{"--bundle", "x"}, cli.ExitBadInput, "a bundle has policies and an access list of its own"},
	} {
		got := execute(t, "", append([]string{"policy", "eval", "--from-audit", log, "--id", "CALL1", "--config", clitest.Write(t, t.TempDir(), "proxy.yaml", c.config)}, c.args...)...)
		if got.Code != c.code || !strings.Contains(got.Out+got.ErrOut, c.want) {
			t.Errorf("%s: %+v; want %q", name, got, c.want)
		}
	}
	if got := execute(t, "", "policy", "eval", "--from-audit", log, "--id", "CALL1", "--config", "missing.yaml"); got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "missing.yaml") {
		t.Errorf("a configuration that is not there: %+v", got)
	}
	dir := t.TempDir()
	key, built := filepath.Join(dir, "key"), filepath.Join(dir, "bundle")
	if got := execute(t, "", "keys", "generate", key, "--for", "bundle"); got.Code != cli.ExitYes {
		t.Fatalf("%+v", got)
	}
	build := func(policy string, more ...string) {
		t.Helper()
		args := []string{"bundle", "build", "--key", key, "--pool", "windows", "--policies", clitest.Write(t, dir, "policies.yaml", policy), "--out", built, "--now", "2026-01-02T03:04:05Z"}
		if got := execute(t, "", append(args, more...)...); got.Code != cli.ExitYes {
			t.Fatalf("%+v", got)
		}
	}
	const named = `apiVersion: pipeguard.dev/v1alpha1
kind: PipePolicy
metadata: {name: azuredisk}
spec:
  pipes: ["csi-proxy-system-*"]
  subjects: [{name: node, namespace: kube-system, serviceAccounts: [driver]}]
  node: {methods: [StopService]}
`
	until := func(end string) string {
		return strings.Replace(named, "[driver]}]", "[driver], owner: o, reason: r, expiresAt: \""+end+"\"}]", 1)
	}
	for name, c := range map[string]struct {
		policy, want string
		code         int
	}{
		"the bundle names the caller":     {named, "now       allow", cli.ExitNo},
		"the bundle named it then":        {until("2026-01-02T03:05:00Z"), "now       allow", cli.ExitNo},
		"the bundle had named it":         {until("2026-01-02T03:04:00Z"), "deny by PN001", cli.ExitYes},
		"the bundle names another":        {strings.Replace(named, "driver", "other", 1), "denies this call, so the caller is not named: PipePolicy azuredisk", cli.ExitYes},
		"the bundle allows all methods":   {strings.Replace(named, "  node: {methods: [StopService]}\n", "", 1), "deny by PN001", cli.ExitYes},
		"the bundle knows another method": {strings.Replace(named, "StopService", "StartService", 1), "deny by PN001", cli.ExitYes},
	} {
		build(c.policy)
		if got := execute(t, "", "policy", "eval", "--from-audit", log, "--id", "CALL1", "--bundle", built); got.Code != c.code || !strings.Contains(got.Out, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	build(named, "--rego", modules)
	if got := execute(t, "", "policy", "eval", "--from-audit", log, "--id", "CALL1", "--bundle", built); got.Code != cli.ExitNo || !strings.Contains(got.Out, "now       deny by HOUSE1") {
		t.Errorf("the bundle's modules refuse: %+v", got)
	}
	if got := execute(t, "", "policy", "eval", "--from-audit", log, "--id", "CALL1", "--bundle", filepath.Join(dir, "policies.yaml")); got.Code != cli.ExitBadInput {
		t.Errorf("no bundle: %+v", got)
	}
}

func TestPolicyEvalReadsADirectoryOfSegments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	clitest.Segments(t, dir, *stopped(&audit.Decision{Effect: audit.EffectAllow, Rule: "drivers", Policy: &audit.Policy{Name: "acl", Revision: "1"}}))
	for name, c := range map[string]struct {
		dir, id string
		code    int
		want    string
	}{
		"a call":       {dir, "CALL1", cli.ExitNo, "recorded  allow by drivers"},
		"no such call": {dir, "nobody", cli.ExitBadInput, `holds no call "nobody"`},
		"an empty one": {t.TempDir(), "CALL1", cli.ExitBadInput, "holds no segments"},
	} {
		if got := execute(t, "", "policy", "eval", "--from-audit", c.dir, "--id", c.id); got.Code != c.code || !strings.Contains(got.Out+got.ErrOut, c.want) {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}
