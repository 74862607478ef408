// Package policytest has what the tests of every policy ask of it, whatever it decides.
package policytest

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/tester"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// WithoutRaceDetector skips a long test of Rego, which takes ten times as long with the race detector: that looks at Go. `make test` runs the test
// without it.
func WithoutRaceDetector(t *testing.T) {
	t.Helper()
	if withRaceDetector {
		t.Skip("it looks at Rego, and runs without the race detector")
	}
}

// PassesUnderOPA runs the tests of a directory as `opa test` does, which loads its JSON files as data and has every builtin.
// There must be at least as many tests as least says.
func PassesUnderOPA(t *testing.T, dir string, least int) {
	t.Helper()
	loaded, store, err := tester.Load([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	results, err := tester.NewRunner().SetStore(store).SetModules(loaded).SetTimeout(time.Minute).RunTests(policy.Bounded(t.Context()), nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for r := range results {
		if n++; !r.Pass() {
			t.Error(r)
		}
	}
	if n < least {
		t.Errorf("only %d tests ran", n)
	}
}

// IsNoticed says whether a test of m fails: a refusal by the checks alone is no notice. An error is a policy that proves nothing, since it does not
// compile.
func IsNoticed(t *testing.T, m policy.Modules, o policy.Options) (bool, error) {
	t.Helper()
	results, _, err := policy.Try(t.Context(), m, o)
	return slices.ContainsFunc(results, func(r policy.TestResult) bool { return !r.Passed }), err
}

// Schema reads a JSON schema.
func Schema(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// Matcher returns a function that says whether a document is of a schema.
func Matcher(t *testing.T, schema []byte) func(any) bool {
	t.Helper()
	q, err := rego.New(rego.Query(`x := json.match_schema(input.document, input.schema)[0]`), rego.StrictBuiltinErrors(true)).PrepareForEval(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := Schema(t, schema)
	return func(v any) bool {
		t.Helper()
		rs, err := q.Eval(t.Context(), rego.EvalInput(map[string]any{"document": v, "schema": s}))
		if err != nil || len(rs) != 1 {
			t.Fatalf("%d results, %v", len(rs), err)
		}
		is, ok := rs[0].Bindings["x"].(bool)
		if !ok {
			t.Fatalf("got %v", rs[0].Bindings)
		}
		return is
	}
}

// Typechecks returns a function that checks the types of modules, and of one rule more in their package, as `opa check --schema`
// does.
func Typechecks(t *testing.T, schema []byte, modules map[string]string, pkg string) func(condition string) error {
	t.Helper()
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, Schema(t, schema))
	return func(condition string) error {
		t.Helper()
		parsed := map[string]*ast.Module{}
		for name, text := range modules {
			m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{ProcessAnnotation: true})
			if err != nil {
				t.Fatal(err)
			}
			parsed[name] = m
		}
		if condition != "" {
			parsed["extra.rego"] = ast.MustParseModule("package " + pkg + "\n\nextra if " + condition)
		}
		c := ast.NewCompiler().WithSchemas(set).WithUseTypeCheckAnnotations(true)
		if c.Compile(parsed); c.Failed() {
			return c.Errors
		}
		return nil
	}
}
