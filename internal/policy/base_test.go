package policy

import (
	"maps"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// What is read of the data without OPA's store and cache is what it reads with them: what is there, what is not, and what
// only one way of writing a key finds.
func TestDataIsReadAsFromTheStore(t *testing.T) {
	o, err := Options{}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	m := Modules{
		Files: map[string]string{"a.rego": "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n\nnearby.x := 1\n"},
		Data: map[string]any{
			"list": []any{"a", map[string]any{"b": 1}}, "object": map[string]any{"0": "zero", "": "empty", "nothing": nil, "no": false, "deep": map[string]any{"x": []any{1, 2}}},
			"pipeguard": map[string]any{"other": 7}, "number": 12345678901234567,
		},
	}
	p, problems := compile(t.Context(), m, o)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	input := ast.MustParseTerm(`{"key": "deep", "zero": 0, "text": "0", "missing": "m", "composite": ["a"]}`).Value
	for _, text := range []string{
		"data.list", "data.list[0]", "data.list[1].b", "data.list[7]", "data.list[input.zero]", "data.list[input.text]", "data.list[_]", "data.list.b",
		"data.object[0]", "data.object[input.zero]", "data.object[input.text]", `data.object[""]`, "data.object.nothing", "data.object.no", "not data.object.no",
		"data.object[input.key].x[1]", "data.object[input.missing]", "data.object[input.key][input.missing].y", "data.object[input.composite]", "data.object[k]",
		"data.number", "data.missing", "data.missing.x", "data.pipeguard.other", "data.pipeguard.nobody", "data.pipeguard", "data", "data.object.no.x",
		`data.object.deep with data.object.deep as {"x": "other"}`, `data.object.no with data.object as {}`, `data.list[0] with data.list as ["b"]`,
		"data.pipeguard.admission.nearby", `{x | x := data.object[_][_]}`,
	} {
		q, err := p.prepare(t.Context(), "x = "+text, p.data)
		if err != nil {
			if q, err = p.prepare(t.Context(), text, p.data); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		with, errWith := q.Eval(t.Context(), rego.EvalParsedInput(input), rego.EvalBaseCache(q.data), rego.EvalExternalCancel(topdown.NewCancel()))
		without, errWithout := q.Eval(t.Context(), rego.EvalParsedInput(input))
		if (errWith == nil) != (errWithout == nil) || shown(with) != shown(without) {
			t.Errorf("%s: %s, %v; want %s, %v", text, shown(with), errWith, shown(without), errWithout)
		}
	}
}

// shown are the results of a query in words.
func shown(results rego.ResultSet) string {
	out := ""
	for _, r := range results {
		for _, name := range slices.Sorted(maps.Keys(r.Bindings)) {
			if term, ok := r.Bindings[name].(*ast.Term); ok {
				out += name + " = " + term.String() + "; "
			}
		}
		for _, e := range r.Expressions {
			out += e.Text + ": "
			if term, ok := e.Value.(*ast.Term); ok {
				out += term.String() + "; "
			}
		}
	}
	return out
}
