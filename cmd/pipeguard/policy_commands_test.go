package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// initialized is a directory with the built-in policies, as authors begin.
func initialized(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policies")
	if got := execute(t, "", "policy", "init", dir); got.code != exitYes {
		t.Fatalf("init: %+v", got)
	}
	return dir
}

// copyOfDefaults is a directory with the built-in policies and the tests of mounts alone: all of them take most of a minute with the race detector.
func copyOfDefaults(t *testing.T) string {
	t.Helper()
	dir := initialized(t)
	keepTests(t, dir, "mount_test.rego")
	return dir
}

// keepTests removes all tests of a directory but those of some files.
func keepTests(t *testing.T, dir string, files ...string) {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.rego"))
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "fixtures_test.rego")
	for _, file := range tests {
		if slices.Contains(files, filepath.Base(file)) {
			continue
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

func edit(t *testing.T, dir, file, from, to string) {
	t.Helper()
	name := filepath.Join(dir, file)
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), from) {
		t.Fatalf("%s does not hold %q", file, from)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), from, to, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func add(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestInitWritesPoliciesThatPassAllTools(t *testing.T) {
	dir := initialized(t)
	for _, name := range []string{"decision.rego", "input.schema.json", "examples"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, args := range [][]string{{"check", dir}, {"test", dir}, {"fmt", dir}} {
		if got := execute(t, "", append([]string{"policy"}, args...)...); got.code != exitYes || got.errOut != "" {
			t.Errorf("%s: %+v", args[0], got)
		}
	}
	if got := execute(t, "", "policy", "init", dir); got.code != exitBadInput {
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
		go func() { code <- run(ctx, args, streams{in, io.Discard, &errOut}) }()
		if _, err := feed.Write([]byte("#")); err != nil { // the work has begun
			t.Fatal(err)
		}
		cancel()
		if got := <-code; got != exitBadInput || !strings.Contains(errOut.String(), "interrupted") {
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
			dir := copyOfDefaults(t)
			add(t, dir, "bad.rego", c.text)
			got := execute(t, "", "policy", "check", dir)
			if got.code != exitNo || !strings.Contains(got.out, c.want) || strings.ContainsRune(got.out, '\x1b') {
				t.Errorf("got %+v, want %q", got, c.want)
			}
			var report checkReport
			asJSON := execute(t, "", "policy", "check", "-o", "json", dir)
			if err := json.Unmarshal([]byte(asJSON.out), &report); err != nil {
				t.Fatal(err)
			}
			if asJSON.code != exitNo || report.OK || len(report.Problems) == 0 || report.Problems[0].File != "bad.rego" || report.Problems[0].Line != 3 {
				t.Errorf("exit code %d, %+v", asJSON.code, report)
			}
		})
	}
}

func TestPolicyCheckInJSON(t *testing.T) {
	dir := t.TempDir()
	add(t, dir, "a.rego", "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n")
	got := execute(t, "", "policy", "check", "-o", "json", dir)
	if got.code != exitYes {
		t.Errorf("got %+v", got)
	}
	golden(t, "policy-check.json", got.out)
	add(t, dir, "b.rego", "package pipeguard.admission\n\nx := y\n")
	golden(t, "policy-check-problems.json", execute(t, "", "policy", "check", "-o", "json", dir).out)
}

func TestPolicyTestSaysWhetherTheWebhookWouldActivate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, dir string)
		want   []string
	}{
		"a failing test is named": {
			func(t *testing.T, dir string) {
				add(t, dir, "own_test.rego", "package own_test\n\ntest_false if 1 == 2\n")
			},
			[]string{"failed: own_test.rego:3 own_test.test_false", " 1 failed", "invariants: skipped"},
		},
		"a rule that lost its effect fails its tests": {
			func(t *testing.T, dir string) { edit(t, dir, "mount.rego", `"effect": "deny"`, `"effect": "warn"`) },
			[]string{"failed: mount_test.rego:"},
		},
		"tests that do not compile are problems": {
			func(t *testing.T, dir string) { add(t, dir, "own_test.rego", "package own_test\n\ntest_x if y\n") },
			[]string{"own_test.rego:3:", "not compiled, no tests run"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyOfDefaults(t)
			c.change(t, dir)
			got := execute(t, "", "policy", "test", dir)
			if got.code != exitNo || got.errOut != "" {
				t.Errorf("exit code %d, want 1; standard error %q", got.code, got.errOut)
			}
			for _, want := range c.want {
				if !strings.Contains(got.out, want) {
					t.Errorf("%q is not in the output:\n%s", want, got.out)
				}
			}
		})
	}
}

// Tests of its own do not get a policy past the invariants.
func TestPolicyTestHoldsPoliciesToTheInvariants(t *testing.T) {
	dir := t.TempDir()
	add(t, dir, "open.rego", "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n")
	golden(t, "policy-test-untested.json", execute(t, "", "policy", "test", "-o", "json", dir).out)
	add(t, dir, "open_test.rego", "package pipeguard.admission_test\n\nimport data.pipeguard.admission\n\ntest_open if admission.decision.allowed\n\ntodo_test_later if false\n")
	got := execute(t, "", "policy", "test", "-v", dir)
	if got.code != exitNo {
		t.Errorf("exit code %d, want 1", got.code)
	}
	golden(t, "policy-test-open.txt", got.out)
	golden(t, "policy-test-open.json", execute(t, "", "policy", "test", "-o", "json", dir).out)
}

func TestPolicyFmtListsShowsAndWrites(t *testing.T) {
	const ugly, pretty = "package a\nx:=1\n", "package a\n\nx := 1\n"
	dir := t.TempDir()
	add(t, dir, "a.rego", ugly)
	add(t, dir, "b.rego", pretty)
	if got := execute(t, "", "policy", "fmt", dir); got != (result{exitNo, "a.rego\n", ""}) {
		t.Errorf("list: %+v", got)
	}
	diff := execute(t, "", "policy", "fmt", "--diff", dir)
	if diff.code != exitNo || !strings.Contains(diff.out, "-x:=1\n+\n+x := 1\n") {
		t.Errorf("diff: %+v", diff)
	}
	if got := execute(t, "", "policy", "fmt", "-w", dir); got != (result{exitYes, "a.rego\n", ""}) {
		t.Errorf("write: %+v", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.rego"))
	if err != nil || string(text) != pretty {
		t.Errorf("written: %q, %v", text, err)
	}
	if got := execute(t, "", "policy", "fmt", dir); got != (result{code: exitYes}) {
		t.Errorf("after writing: %+v", got)
	}
}

func TestPolicyFmtWritesNothingIfOneModuleCannotBeParsed(t *testing.T) {
	dir := t.TempDir()
	add(t, dir, "a.rego", "package a\nx:=1\n")
	add(t, dir, "b.rego", "package b\nx := {\n")
	got := execute(t, "", "policy", "fmt", "-w", dir)
	if got.code != exitBadInput || !strings.Contains(got.errOut, "b.rego:") {
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
		dir := copyOfDefaults(t)
		add(t, dir, "own.rego", text)
		if got := execute(t, "", "policy", "check", dir); got.code != exitNo || !strings.Contains(got.out, want) {
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
	if got := execute(t, "", "keys", "generate", key, "--for", "bundle"); got.code != exitYes {
		t.Fatalf("%+v", got)
	}
	for method, want := range map[string]string{"ListDiskIDs": "", "ListDisksIDs": `did you mean "ListDiskIDs"?`} {
		add(t, dir, "policies.yaml", strings.Replace(policy, "METHOD", method, 1))
		for _, command := range [][]string{
			{"policy", "check", "--policies", file},
			{"bundle", "build", "--key", key, "--pool", "p", "--policies", file, "--out", filepath.Join(dir, "b.tar.gz")},
		} {
			got := execute(t, "", command...)
			if want == "" && (got.code != exitYes || !strings.Contains(got.errOut, "warning: PipePolicy disks: subject node expired")) {
				t.Errorf("%v: %+v", command, got)
			}
			if want != "" && (got.code == exitYes || !strings.Contains(got.errOut+got.out, want)) {
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
		if got.code != exitBadInput || !strings.Contains(got.errOut, want) {
			t.Errorf("exit code %d, %q; want %q", got.code, got.errOut, want)
		}
	}
}

func TestCheckCompilesTheTests(t *testing.T) {
	const bad = "package bad_test\n\ntest_bad if http.send({})\n"
	dir := copyOfDefaults(t)
	sample := filepath.Join("..", "..", "config", "samples", "policymodule_registries.yaml")
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	module := string(text) + "    - name: bad_test.rego\n      rego: |\n        package bad_test\n\n        test_bad if http.send({})\n"
	if got := execute(t, "", "policy", "check", "--policies", sample, dir); got.code != exitYes {
		t.Fatalf("before: %+v", got)
	}
	const want = "bad_test.rego:3:"
	if got := execute(t, module, "policy", "check", "--policies", "-"); got.code != exitNo || !strings.Contains(got.out, want) {
		t.Errorf("a test of a PolicyModule: %+v", got)
	}
	add(t, dir, "bad_test.rego", bad)
	for _, args := range [][]string{{dir}, {"--policies", sample, dir}} {
		if got := execute(t, "", append([]string{"policy", "check"}, args...)...); got.code != exitNo || !strings.Contains(got.out, want) {
			t.Errorf("a test of the directory, %q: %+v", args, got)
		}
	}
}
