package policy

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/policies"
)

// small is a policy that refuses what input.bad holds, with a test.
func small() Modules {
	return Modules{Files: map[string]string{
		"small.rego": `package pipeguard.admission

# METADATA
# title: Bad
# custom:
#   code: T001
#   severity: low
#   docs: https://example.com/t001
#   remedy: Be good.
findings contains {"code": "T001", "effect": "deny"} if input.bad

default allowed := false

allowed if count(findings) == 0

decision := {"allowed": allowed, "findings": findings}
`,
		"small_test.rego": `package pipeguard.admission_test

import data.pipeguard.admission

test_bad_is_refused if not admission.allowed with input as {"bad": true}
`,
	}}
}

// with returns m and more files.
func (m Modules) with(files map[string]string) Modules {
	all := maps.Clone(m.Files)
	maps.Copy(all, files)
	m.Files = all
	return m
}

// deciding returns a policy whose decision is one expression.
func deciding(expression string) Modules {
	return Modules{Files: map[string]string{
		"decision.rego":      "package pipeguard.admission\n\ndecision := " + expression + "\n",
		"decision_test.rego": "package pipeguard.admission_test\n\ntest_nothing if true\n",
	}}
}

func parameters() map[string]any {
	return map[string]any{"pipeguard": map[string]any{"parameters": map[string]any{
		"guardedPipes":      []any{"csi-proxy*"},
		"requirement":       "PrivilegedOrAllowedNamespace",
		"allowedNamespaces": map[string]any{"kube-system": map[string]any{"serviceAccounts": []any{"csi-azuredisk-node-sa"}}},
		"hostProcess":       "Audit",
		"equalPower":        "Audit", "hostPaths": "Audit",
	}}}
}

func defaultPolicy(t testing.TB) Modules {
	t.Helper()
	m, err := LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	return m.WithData(parameters())
}

// WithData returns the same modules with other data.
func (m Modules) WithData(data map[string]any) Modules {
	m.Data = data
	return m
}

// patient is for tests about something else than time: a loaded machine must not fail them.
var patient = Options{Timeout: 20 * time.Second}

func activated(t testing.TB, m Modules, o Options) *Engine {
	t.Helper()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return e
}

func value(t testing.TB, v any) ast.Value {
	t.Helper()
	out, err := ToValue(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func wantError(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", text)
	}
	if !strings.Contains(err.Error(), text) {
		t.Fatalf("got error %q, want it to contain %q", err, text)
	}
}

func patientOptions(t testing.TB) Options {
	t.Helper()
	o, err := patient.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// WithoutRaceDetector skips a long test that runs on one goroutine; `make test` runs it without the race detector, under which it takes ten
// times as long.
func WithoutRaceDetector(t *testing.T) {
	t.Helper()
	if withRaceDetector {
		t.Skip("it has one goroutine, and runs without the race detector")
	}
}
