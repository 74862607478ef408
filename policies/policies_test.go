package policies_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/test/policytest"
)

var patient = policy.Options{Timeout: 20 * time.Second}

func modules(t testing.TB) policy.Modules {
	t.Helper()
	m, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// withData returns the same modules with other data.
func withData(m policy.Modules, data map[string]any) policy.Modules {
	m.Data = data
	return m
}

// parameters are those of the tests in Rego.
func parameters(hostProcess string) map[string]any {
	return map[string]any{"pipeguard": map[string]any{"parameters": map[string]any{
		"guardedPipes":      []any{"csi-proxy*"},
		"requirement":       "PrivilegedOrAllowedNamespace",
		"allowedNamespaces": map[string]any{"kube-system": map[string]any{"serviceAccounts": []any{"csi-azuredisk-node-sa"}}},
		"hostProcess":       hostProcess,
		"equalPower":        "Audit",
		"hostPaths":         "Audit",
	}}}
}

type active struct {
	*policy.Engine
	snapshot policy.Snapshot
}

// activate activates the policy once for all tests, which only ask it.
var activate = sync.OnceValues(func() (a active, err error) {
	m, err := policy.LoadFS(policies.FS())
	if err != nil {
		return active{}, err
	}
	if a.Engine, err = policy.New(patient); err != nil {
		return active{}, err
	}
	a.snapshot, err = a.Activate(context.Background(), withData(m, parameters("Deny")))
	return a, err
})

func activated(t *testing.T) (*policy.Engine, policy.Snapshot) {
	t.Helper()
	a, err := activate()
	if err != nil {
		t.Fatal(err)
	}
	return a.Engine, a.snapshot
}

// accessBy is what an input says of a pipe that the policy azuredisk governs.
func accessBy(privilegedSuffices bool, subjects ...any) map[string]any {
	return map[string]any{"action": "Deny", "privilegedSuffices": privilegedSuffices, "subjects": append([]any{}, subjects...), "nearest": []any{}}
}

// ungoverned is what it says of a pipe that no policy governs.
func ungoverned() map[string]any {
	return map[string]any{"action": "", "privilegedSuffices": false, "subjects": []any{}, "nearest": []any{}}
}

// ruleFiles are the files that add findings or advice.
func ruleFiles(t *testing.T, m policy.Modules) []string {
	t.Helper()
	var out []string
	for name, text := range m.Files {
		if !strings.HasSuffix(name, "_test.rego") && (strings.Contains(text, "\nfindings contains") || strings.Contains(text, "\nadvice contains")) {
			out = append(out, strings.TrimSuffix(name, ".rego"))
		}
	}
	if len(out) != 12 {
		t.Fatalf("%d rule files: %v", len(out), out)
	}
	return out
}

func example(t testing.TB, name string) any {
	t.Helper()
	text, err := fs.ReadFile(policies.Examples(), path.Join(name, "input.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func TestPolicyPassesUnderPlainOPA(t *testing.T) {
	policytest.WithoutRaceDetector(t)
	policytest.PassesUnderOPA(t, ".", 120)
}

func TestPolicyIsActivatedWithAndWithoutParameters(t *testing.T) {
	policytest.WithoutRaceDetector(t)
	for name, data := range map[string]map[string]any{"with": parameters("Audit"), "without": nil} {
		e, err := policy.New(patient)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Activate(t.Context(), withData(modules(t), data)); err != nil || s.Tests() < 120 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryRuleHasADescriptionATestAndAnExample(t *testing.T) {
	m := modules(t)
	_, s := activated(t)
	for _, code := range []string{"PG000", "PG001", "PG002", "PG003", "PG004", "PG005", "PG006", "PG007", "PG008", "PG009", "PG010", "PG011"} {
		r, ok := s.Rule(code)
		if !ok || r.Title == "" || r.Description == "" || r.Severity == "" || r.Remedy == "" {
			t.Errorf("%s: %+v", code, r)
		}
		if !strings.HasSuffix(r.Docs, "#"+strings.ToLower(code)) {
			t.Errorf("%s: docs are at %q", code, r.Docs)
		}
	}
	if len(s.Rules()) != 12 {
		t.Errorf("%d rules", len(s.Rules()))
	}
	for _, name := range ruleFiles(t, m) {
		if m.Files[name+"_test.rego"] == "" {
			t.Errorf("%s has no test", name)
		}
		if _, err := fs.Stat(policies.Examples(), path.Join(name, "input.json")); err != nil {
			t.Errorf("%s has no example: %v", name, err)
		}
	}
}

func TestExamplesShowTheirRule(t *testing.T) {
	finding := func(code string, effect policy.Effect, field string) []policy.Finding {
		return []policy.Finding{{Code: code, Effect: effect, Field: field}}
	}
	want := map[string]policy.Decision{
		"input":                   {Findings: finding("PG000", "deny", "")},
		"mount":                   {Findings: finding("PG001", "deny", "spec.containers[0].volumeMounts[0]")},
		"unmounted":               {Findings: finding("PG002", "deny", "spec.volumes[0].hostPath.path")},
		"no_single_pipe":          {Findings: finding("PG003", "deny", "spec.containers[2].volumeMounts[2]")},
		"privileged_alone":        {Allowed: true, Findings: finding("PG004", "warn", "spec.containers[0]")},
		"host_process":            {Findings: finding("PG005", "deny", "spec.containers[0]")},
		"host_process_annotation": {Findings: finding("PG006", "deny", "metadata.annotations[microsoft.com/hostprocess-inherit-user]")},
		"persistent_volume":       {Findings: finding("PG007", "deny", "spec.hostPath.path")},
		"equal_power":             {Allowed: true, Findings: finding("PG008", "audit", "spec.containers[0].volumeMounts[0]")},
		"host_path":               {Allowed: true, Findings: finding("PG011", "audit", "spec.containers[0].volumeMounts[0]")},
		"permission_ends":         {Allowed: true, Findings: finding("PG009", "warn", "spec.containers[2].volumeMounts[2]")},
		"governed":                {Findings: finding("PG010", "deny", "spec.containers[2].volumeMounts[2]")},
		"driver":                  {Allowed: true, Findings: []policy.Finding{}},
	}
	e, s := activated(t)
	entries, err := fs.ReadDir(policies.Examples(), ".")
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%d examples, %v", len(entries), err)
	}
	for name, d := range want {
		input, err := policy.ToValue(example(t, name))
		if err != nil {
			t.Fatal(err)
		}
		d.Revision = s.Revision()
		got, err := e.Decide(t.Context(), input)
		if diff := cmp.Diff(d, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// A pod has as many containers as its author likes: were each held against each mount, four times as many would take
// sixteen times as long, and a thousand longer than an evaluation may.
func TestTheWorkOfADecisionDoesNotGrowWithTheSquareOfTheContainers(t *testing.T) {
	policytest.WithoutRaceDetector(t)
	e, err := policy.New(patient)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), withData(modules(t), parameters("Audit"))); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		governors []any
		access    map[string]any
	}{
		"parameters":   {[]any{}, ungoverned()},
		"a PipePolicy": {[]any{"azuredisk"}, accessBy(true)},
	} {
		// What is evaluated is allocated, and unlike time that is the same on a busy machine.
		allocations := func(containers int) float64 {
			input := privilegedMounters(t, containers, c.governors, c.access)
			return testing.AllocsPerRun(2, func() {
				d, err := e.Decide(t.Context(), input)
				if err != nil || !d.Allowed || len(d.Findings) != containers || d.Findings[0].Code != "PG004" {
					t.Fatalf("allowed %t, %d findings, %v", d.Allowed, len(d.Findings), err)
				}
			})
		}
		few, many := allocations(250), allocations(1000)
		t.Logf("by %s: 250 containers with a mount each: %.0f allocations, 1000: %.0f", name, few, many)
		if many > 6*few {
			t.Errorf("by %s: four times the containers took %.1f times the allocations", name, many/few)
		}
	}
}

// privilegedMounters is the input of a pod of n privileged containers that each mount a guarded pipe.
func privilegedMounters(t *testing.T, n int, governors []any, access map[string]any) ast.Value {
	t.Helper()
	document := example(t, "privileged_alone").(map[string]any)
	for list, key := range map[string]string{"containers": "name", "mounts": "container"} {
		all := make([]any, n)
		for i := range all {
			entry := maps.Clone(document[list].([]any)[0].(map[string]any))
			entry[key], entry["field"] = fmt.Sprint("c", i), fmt.Sprintf("%s[%d]", list, i)
			if list == "mounts" {
				entry["policies"], entry["access"] = governors, access
			}
			all[i] = entry
		}
		document[list] = all
	}
	input, err := policy.ToValue(document)
	if err != nil {
		t.Fatal(err)
	}
	return input
}

func TestPolicyIsFormatted(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if path.Ext(entry.Name()) != ".rego" {
			continue
		}
		text, err := os.ReadFile(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		formatted, err := policy.Format(entry.Name(), text)
		if diff := cmp.Diff(string(formatted), string(text)); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", entry.Name(), err, diff)
		}
	}
}
