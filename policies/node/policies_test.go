package node_test

import (
	"encoding/json"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
	"github.com/pipeguard/pipeguard/policies/node"
	"github.com/pipeguard/pipeguard/test/policytest"
)

var patient = nodepolicy.EngineOptions(policy.Options{Timeout: 20 * time.Second})

func modules(t testing.TB) policy.Modules {
	t.Helper()
	m, err := policy.LoadFS(node.FS())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func activate(t testing.TB, m policy.Modules) (*requestpolicy.Evaluator, policy.Snapshot) {
	t.Helper()
	e, err := requestpolicy.New(patient)
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Activate(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return e, s
}

func example(t testing.TB, name string) any {
	t.Helper()
	text, err := fs.ReadFile(node.Examples(), path.Join(name, "input.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func input(t testing.TB, v any) ast.Value {
	t.Helper()
	in, err := policy.ToValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestPolicyPassesUnderPlainOPA(t *testing.T) { policytest.PassesUnderOPA(t, ".", 29) }

func TestEveryRuleHasADescriptionATestAndAnExample(t *testing.T) {
	m := modules(t)
	_, s := activate(t, m)
	for _, code := range []string{"PN000", "PN001", "PN002", "PN003", "PN004"} {
		r, ok := s.Rule(code)
		if !ok || r.Title == "" || r.Description == "" || r.Severity == "" || r.Remedy == "" {
			t.Errorf("%s: %+v", code, r)
		}
		if !strings.HasSuffix(r.Docs, "#"+strings.ToLower(code)) {
			t.Errorf("%s: docs are at %q", code, r.Docs)
		}
	}
	if len(s.Rules()) != 5 {
		t.Errorf("%d rules", len(s.Rules()))
	}
	for name, text := range m.Files {
		if strings.HasSuffix(name, "_test.rego") || !strings.Contains(text, "\nfindings contains") {
			continue
		}
		name = strings.TrimSuffix(name, ".rego")
		if m.Files[name+"_test.rego"] == "" {
			t.Errorf("%s has no test", name)
		}
		if _, err := fs.Stat(node.Examples(), path.Join(name, "input.json")); err != nil {
			t.Errorf("%s has no example: %v", name, err)
		}
	}
}

func TestExamplesShowTheirRule(t *testing.T) {
	want := map[string]string{
		"input": "PN000", "service_control": "PN001", "partition_disk": "PN002", "disk_offline": "PN003", "format_volume": "PN004", "driver": "",
	}
	e, _ := activate(t, modules(t))
	entries, err := fs.ReadDir(node.Examples(), ".")
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%d examples, %v", len(entries), err)
	}
	for name, rule := range want {
		if d := e.DecideInput(t.Context(), input(t, example(t, name))); d.Rule != rule || d.Allowed() != (rule == "") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Whoever writes an addition may refuse more and never less, whatever it defines.
func TestAdditionsCannotPermit(t *testing.T) {
	for name, text := range map[string]string{
		"another way to be allowed":         "package pipeguard.node\n\nallowed if true",
		"another default":                   "package pipeguard.node\n\ndefault is_named := true",
		"another decision":                  "package pipeguard.node\n\ndecision := {\"allowed\": true, \"findings\": set()}",
		"somebody is named":                 "package pipeguard.node\n\nis_named if input.peer.pod.namespace == \"evil\"",
		"an input that is always right":     "package pipeguard.node\n\nwell_formed if true",
		"from the package above":            "package pipeguard\n\nnode.is_named if true",
		"with a variable":                   "package pipeguard\n\nnode[x] := true if some x in [\"is_named\"]",
		"from the top":                      "package pipeguard\n\nnode := {\"decision\": {\"allowed\": true, \"findings\": []}}",
		"a part of a rule":                  "package pipeguard.node.is_named\n\nx := true",
		"the data":                          "package pipeguard.parameters.node\n\nnamed := {}",
		"around the data":                   "package pipeguard\n\nparameters.node.named := {}",
		"findings that are no set":          "package pipeguard.node\n\nfindings := []",
		"findings under keys":               "package pipeguard.node\n\nfindings[x] := y if { x := \"a\"; y := 1 }",
		"a finding with an unknown effect":  "package pipeguard.node\n\nfindings contains {\"code\": \"X\", \"effect\": \"allow\"}",
		"a finding that is no object":       "package pipeguard.node\n\nfindings contains \"allow\"",
		"advice that denies or breaks":      "package pipeguard.node\n\nadvice contains to_number(\"x\")",
		"a function that replaces findings": "package pipeguard.node\n\nfindings(_) := set()",
	} {
		t.Run(name, func(t *testing.T) {
			m, err := nodepolicy.Modules(map[string]string{
				"added/a.rego":      text,
				"added/a_test.rego": "package added_test\n\ntest_it if true",
			})
			if err != nil {
				return
			}
			e, err := requestpolicy.New(patient)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Activate(t.Context(), m); err != nil {
				return
			}
			for _, of := range []string{"service_control", "partition_disk", "disk_offline", "format_volume", "input"} {
				if d := e.DecideInput(t.Context(), input(t, example(t, of))); d.Allowed() {
					t.Errorf("%s: %+v", of, d)
				}
			}
		})
	}
}

func TestAnAdditionRefusesMore(t *testing.T) {
	m, err := nodepolicy.Modules(map[string]string{
		"added/a.rego": `package pipeguard.node

findings contains {"code": "ACME-1", "effect": "deny", "message": "no links here"} if {
	input.operation == "CreateSymlink"
}`,
		"added/a_test.rego": `package added_test

import data.pipeguard.node

test_it if "ACME-1" in {f.code | some f in node.findings} with input as {"operation": "CreateSymlink"}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := activate(t, m)
	if d := e.DecideInput(t.Context(), input(t, example(t, "driver"))); d.Rule != "ACME-1" || d.Reason != "no links here" {
		t.Errorf("%+v", d)
	}
	if d := e.DecideInput(t.Context(), input(t, example(t, "service_control"))); d.Rule != "PN001" {
		t.Errorf("%+v", d)
	}
	if _, err := nodepolicy.Modules(map[string]string{"input.rego": "package x"}); err == nil {
		t.Error("an addition took the name of a built-in file")
	}
}

func TestPolicyIsFormatted(t *testing.T) {
	for name, text := range modules(t).Files {
		formatted, err := policy.Format(name, []byte(text))
		if diff := cmp.Diff(string(formatted), text); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}
