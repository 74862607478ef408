package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// FuzzDecodeDecision holds that nothing is allowed unless it says so in full.
func FuzzDecodeDecision(f *testing.F) {
	for _, s := range []string{
		`{"allowed": true, "findings": []}`, `{"allowed": true, "findings": [{"code": "A", "effect": "deny"}]}`,
		`{"allowed": true, "findings": [{"code": "A", "effect": "warn", "field": "f", "message": "m"}]}`, `{"allowed": 1}`, `[]`, `{"allowed": true, "findings": [[]]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ast.ValueFromReader(strings.NewReader(s))
		if err != nil {
			return
		}
		d, err := decodeDecision(v)
		if err != nil {
			if d.Allowed {
				t.Fatal("allowed, with an error")
			}
			return
		}
		object, ok := v.(ast.Object)
		if !ok || object.Len() != 2 {
			t.Fatalf("taken: %s", s)
		}
		if d.Allowed != object.Get(ast.StringTerm("allowed")).Equal(ast.BooleanTerm(true)) {
			t.Fatalf("%s became %+v", s, d)
		}
		if d.Allowed && slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Effect != EffectWarn && f.Effect != EffectAudit }) {
			t.Fatalf("allowed in spite of %+v", d.Findings)
		}
	})
}

// FuzzPlainFormat holds that a format that is taken prints about as much as it is given.
func FuzzPlainFormat(f *testing.F) {
	for _, s := range []string{"%s", "%%", "%", "%5d", "%-5s", "%*d", "%[1]s", "%.3f", "%v%v", "x%xyz", "%+d", "% d", "%#x", "%05d"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !plainFormat(s) {
			return
		}
		args := make([]any, strings.Count(s, "%"))
		for i := range args {
			args[i] = 1
		}
		if out := fmt.Sprintf(s, args...); len(out) > 20*(len(s)+1) {
			t.Fatalf("%q printed %d bytes", s, len(out))
		}
	})
}

// FuzzValidate holds that no module makes the compiler panic, and that every problem says where it is or concerns all.
func FuzzValidate(f *testing.F) {
	f.Add(small().Files["small.rego"])
	f.Add("package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []} if input.object")
	f.Add("package system\nx := concat(x, [])")
	f.Add("package a\nx contains sprintf(\"%s\", [y]) if some y in input with input as {}")
	f.Add("package pipeguard\nparameters[x].y := 1 if x := \"a\" else := 2")
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range Validate(Modules{Files: map[string]string{"a.rego": text}}, Options{}) {
			if p.Code == CodeInternal {
				t.Fatal(p)
			}
			if p.Code == "" || p.Message == "" || p.Line < 0 || (p.Line > 0 && (p.Col < 1 || p.File != "a.rego")) {
				t.Fatalf("%+v", p)
			}
		}
	})
}
