package policycmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// initialized is a directory with the built-in policies, as authors begin.
func initialized(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policies")
	if got := execute(t, "", "policy", "init", dir); got.Code != cli.ExitYes {
		t.Fatalf("init: %+v", got)
	}
	return dir
}

func TestInitWritesPoliciesThatPassAllTools(t *testing.T) {
	dir := initialized(t)
	for _, name := range []string{"decision.rego", "input.schema.json", "examples"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, args := range [][]string{{"check", dir}, {"test", dir}, {"fmt", dir}} {
		if got := execute(t, "", append([]string{"policy"}, args...)...); got.Code != cli.ExitYes || got.ErrOut != "" {
			t.Errorf("%s: %+v", args[0], got)
		}
	}
	if got := execute(t, "", "policy", "init", dir); got.Code != cli.ExitBadInput {
		t.Errorf("a second init: %+v", got)
	}
}

// A read that does not end stands for a compiler that does not: neither looks at the context.
func TestAnInterruptEndsACommandWhoseWorkGoesOn(t *testing.T) {
	for _, args := range [][]string{
		{"policy", "check", "--policies", "-"},
		{"policy", "test", "--policies", "-"},
		{"policy", "eval", "--input", "-"},
	} {
		in, feed := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		var errOut bytes.Buffer
		code := make(chan int)
		go func() { code <- runCommand(ctx, args, in, io.Discard, &errOut) }()
		if _, err := feed.Write([]byte("#")); err != nil { // the work has begun
			t.Fatal(err)
		}
		cancel()
		if got := <-code; got != cli.ExitBadInput || !strings.Contains(errOut.String(), "interrupted") {
			t.Errorf("%v: exit code %d, %s", args, got, errOut.String())
		}
		_ = feed.Close()
	}
}

func TestPolicyCheckNamesFileLineAndColumn(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a syntax error":          {"package pipeguard.admission\n\nfindings contains }\n", "bad.rego:3:"},
		"an unsafe variable":      {"package pipeguard.admission\n\nfindings contains x if { y == 1 }\n", "bad.rego:3:19: rego_unsafe_var_error: "},
		"a function of the net":   {"package pipeguard.admission\n\nx := http.send({})\n", "bad.rego:3:"},
		"an undefined function":   {"package pipeguard.admission\n\nx := frobnicate(1)\n", "bad.rego:3:6: rego_type_error: "},
		"a control character":     {"package pipeguard.admission\n\nx := \x1b[2J\n", "bad.rego:3:"},
		"Rego of the old version": {"package pipeguard.admission\n\nx { true }\n", "bad.rego:3:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := clitest.Policies(t)
			clitest.Write(t, dir, "bad.rego", c.text)
			got := execute(t, "", "policy", "check", dir)
			if got.Code != cli.ExitNo || !strings.Contains(got.Out, c.want) || strings.ContainsRune(got.Out, '\x1b') {
				t.Errorf("got %+v, want %q", got, c.want)
			}
			var report checkReport
			asJSON := execute(t, "", "policy", "check", "-o", "json", dir)
			if err := json.Unmarshal([]byte(asJSON.Out), &report); err != nil {
				t.Fatal(err)
			}
			if asJSON.Code != cli.ExitNo || report.OK || len(report.Problems) == 0 || report.Problems[0].File != "bad.rego" || report.Problems[0].Line != 3 {
				t.Errorf("exit code %d, %+v", asJSON.Code, report)
			}
		})
	}
}

func TestPolicyCheckInJSON(t *testing.T) {
	dir := t.TempDir()
	clitest.Write(t, dir, "a.rego", "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n")
	got := execute(t, "", "policy", "check", "-o", "json", dir)
	if got.Code != cli.ExitYes {
		t.Errorf("got %+v", got)
	}
	clitest.Golden(t, "policy-check.json", got.Out)
	clitest.Write(t, dir, "b.rego", "package pipeguard.admission\n\nx := y\n")
	clitest.Golden(t, "policy-check-problems.json", execute(t, "", "policy", "check", "-o", "json", dir).Out)
}

func TestPolicyTestSaysWhetherTheWebhookWouldActivate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   []string
	}{
		"a failing test is named": {
			func(t *testing.T, dir string) {
				clitest.Write(t, dir, "own_test.rego", "package own_test\n\ntest_false if 1 == 2\n")
			},
			[]string{"failed: own_test.rego:3 own_test.test_false", " 1 failed", "invariants: skipped"},
		},
		"a rule that lost its effect fails its tests": {
			func(t *testing.T, dir string) {
				clitest.Edit(t, dir, "mount.rego", `"effect": effect_of(mount)`, `"effect": "warn"`)
			},
			[]string{"failed: mount_test.rego:"},
		},
		"tests that do not compile are problems": {
			func(t *testing.T, dir string) {
				clitest.Write(t, dir, "own_test.rego", "package own_test\n\ntest_x if y\n")
			},
			[]string{"own_test.rego:3:", "not compiled, no tests run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := clitest.Policies(t)
			c.change(t, dir)
			got := execute(t, "", "policy", "test", dir)
			if got.Code != cli.ExitNo || got.ErrOut != "" {
				t.Errorf("exit code %d, want 1; standard error %q", got.Code, got.ErrOut)
			}
			for _, want := range c.want {
				if !strings.Contains(got.Out, want) {
					t.Errorf("%q is not in the output:\n%s", want, got.Out)
				}
			}
		})
	}
}

// Tests of its own do not get a policy past the invariants.
func TestPolicyTestHoldsPoliciesToTheInvariants(t *testing.T) {
	dir := t.TempDir()
	clitest.Write(t, dir, "open.rego", "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n")
	clitest.Golden(t, "policy-test-untested.json", execute(t, "", "policy", "test", "-o", "json", dir).Out)
	clitest.Write(t, dir, "open_test.rego", "package pipeguard.admission_test\n\nimport data.pipeguard.admission\n\ntest_open if admission.decision.allowed\n\ntodo_test_later if false\n")
	got := execute(t, "", "policy", "test", "-v", dir)
	if got.Code != cli.ExitNo {
		t.Errorf("exit code %d, want 1", got.Code)
	}
	clitest.Golden(t, "policy-test-open.txt", got.Out)
	clitest.Golden(t, "policy-test-open.json", execute(t, "", "policy", "test", "-o", "json", dir).Out)
}

func TestPolicyFmtListsShowsAndWrites(t *testing.T) {
	const ugly, pretty = "package a\nx:=1\n", "package a\n\nx := 1\n"
	dir := t.TempDir()
	clitest.Write(t, dir, "a.rego", ugly)
	clitest.Write(t, dir, "b.rego", pretty)
	if got := execute(t, "", "policy", "fmt", dir); got != (result{Code: cli.ExitNo, Out: "a.rego\n"}) {
		t.Errorf("list: %+v", got)
	}
	diff := execute(t, "", "policy", "fmt", "--diff", dir)
	if diff.Code != cli.ExitNo || !strings.Contains(diff.Out, "-x:=1\n+\n+x := 1\n") {
		t.Errorf("diff: %+v", diff)
	}
	if got := execute(t, "", "policy", "fmt", "-w", dir); got != (result{Code: cli.ExitYes, Out: "a.rego\n"}) {
		t.Errorf("write: %+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.rego"))
	if err != nil || string(text) != pretty {
		t.Errorf("written: %q, %v", text, err)
	}
	if got := execute(t, "", "policy", "fmt", dir); got != (result{Code: cli.ExitYes}) {
		t.Errorf("after writing: %+v", got)
	}
}

func TestPolicyFmtWritesNothingIfOneModuleCannotBeParsed(t *testing.T) {
	dir := t.TempDir()
	clitest.Write(t, dir, "a.rego", "package a\nx:=1\n")
	clitest.Write(t, dir, "b.rego", "package b\nx := {\n")
	got := execute(t, "", "policy", "fmt", "-w", dir)
	if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "b.rego:") {
		t.Errorf("got %+v", got)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.rego")); err != nil || string(text) != "package a\nx:=1\n" {
		t.Errorf("a.rego was changed: %q, %v", text, err)
	}
}

func TestPolicyCheckRefusesMisspeltNames(t *testing.T) {
	for text, want := range map[string]string{
		"package pipeguard.admission\n\nown if input.namespce == \"a\"\n": "own.rego:3:8: name: input.namespce is read here, and no input has it: did you mean input.namespace?",
		"package pipeguard.admision\n\nown if true\n":                     "did you mean package pipeguard.admission?",
		"package pipeguard.admission\n\nfinding contains 1\n":             "did you mean findings?",
	} {
		dir := clitest.Policies(t)
		clitest.Write(t, dir, "own.rego", text)
		if got := execute(t, "", "policy", "check", dir); got.Code != cli.ExitNo || !strings.Contains(got.Out, want) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestPipePoliciesAreHeldToOneStandardByAllCommands(t *testing.T) {
	const policy = `apiVersion: pipeguard.dev/v1alpha1
kind: PipePolicy
metadata: {name: disks}
spec:
  pipes: [csi-proxy-disk-*]
  node: {methods: [METHOD]}
  subjects: [{name: node, namespace: kube-system, serviceAccounts: [sa], owner: o, reason: r, expiresAt: "2020-01-01T00:00:00Z"}]
`
	dir := t.TempDir()
	file, key := filepath.Join(dir, "policies.yaml"), filepath.Join(dir, "bundle.key")
	if got := execute(t, "", "keys", "generate", key, "--for", "bundle"); got.Code != cli.ExitYes {
		t.Fatalf("%+v", got)
	}
	for method, want := range map[string]string{"ListDiskIDs": "", "ListDisksIDs": `did you mean "ListDiskIDs"?`} {
		clitest.Write(t, dir, "policies.yaml", strings.Replace(policy, "METHOD", method, 1))
		for _, command := range [][]string{
			{"policy", "check", "--policies", file},
			{"bundle", "build", "--key", key, "--pool", "p", "--policies", file, "--out", filepath.Join(dir, "b.tar.gz")},
		} {
			got := execute(t, "", command...)
			if want == "" && (got.Code != cli.ExitYes || !strings.Contains(got.ErrOut, "warning: PipePolicy disks: subject node expired")) {
				t.Errorf("%v: %+v", command, got)
			}
			if want != "" && (got.Code == cli.ExitYes || !strings.Contains(got.ErrOut+got.Out, want)) {
				t.Errorf("%v: %+v", command, got)
			}
		}
	}
}

func TestPolicyObjectsThatShowOtherwiseThanTheyReadAreRefused(t *testing.T) {
	const head = "apiVersion: pipeguard.dev/v1alpha1\nkind: PipePolicy\nmetadata: {name: p}\n"
	for text, want := range map[string]string{
		head + "# for now:\u0085spec: {pipes: ['*'], action: Audit}\n": "document 1 (line 1): lines counted within the document: line 4: U+0085",
		"---\n" + head + "spec: {pipes: [!!binary Kg==]}\n":            "document 1 (line 2): lines counted within the document: line 4: the tag !!binary",
	} {
		got := execute(t, text, "policy", "check", "--policies", "-")
		if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, want) {
			t.Errorf("exit code %d, %q; want %q", got.Code, got.ErrOut, want)
		}
	}
}

func TestCheckCompilesTheTests(t *testing.T) {
	const bad = "package bad_test\n\ntest_bad if http.send({})\n"
	dir := clitest.Policies(t)
	sample := filepath.Join("..", "..", "..", "..", "config", "samples", "policymodule_registries.yaml")
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	module := string(text) + "    - name: bad_test.rego\n      rego: |\n        package bad_test\n\n        test_bad if http.send({})\n"
	if got := execute(t, "", "policy", "check", "--policies", sample, dir); got.Code != cli.ExitYes {
		t.Fatalf("before: %+v", got)
	}
	const want = "bad_test.rego:3:"
	if got := execute(t, module, "policy", "check", "--policies", "-"); got.Code != cli.ExitNo || !strings.Contains(got.Out, want) {
		t.Errorf("a test of a PolicyModule: %+v", got)
	}
	clitest.Write(t, dir, "bad_test.rego", bad)
	for _, args := range [][]string{{dir}, {"--policies", sample, dir}} {
		if got := execute(t, "", append([]string{"policy", "check"}, args...)...); got.Code != cli.ExitNo || !strings.Contains(got.Out, want) {
			t.Errorf("a test of the directory, %q: %+v", args, got)
		}
	}
}
