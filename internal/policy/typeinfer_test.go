package policy

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// doubling are modules whose types grow exponentially with the number of rules or variables, which %d and %p number as repeated does; %n
// is the last. OPA's type checker takes seconds for 10 to 28 of them, and for ever for 40.
var doubling = map[string]struct{ first, next, last string }{
	"arrays":                     {"x0 := 1\ny0 := 1", "x%d := [x%p, x%p]\ny%d := [y%p, y%p]", "z if x%n == y%n"},
	"arrays of one":              {"x0 := 1\ny0 := 1", "x%d := [x%p]\ny%d := [y%p]", "z if x%n == y%n"},
	"objects":                    {"x0 := 1\ny0 := 1", `x%d := {"a": x%p, "b": x%p}` + "\n" + `y%d := {"a": y%p, "b": y%p}`, "z if x%n == y%n"},
	"objects of one":             {"x0 := 1\ny0 := 1", `x%d := {"a": x%p}` + "\n" + `y%d := {"a": y%p}`, "z if x%n == y%n"},
	"objects with names unknown": {"x0 := 1\ny0 := 1", "x%d := {input.a: [x%p, x%p]}\ny%d := {input.a: [y%p, y%p]}", "z if x%n == y%n"},
	"sets of several":            {"x0 := 1\ny0 := 1", "x%d := {[x%p], {x%p}}\ny%d := {[y%p], {y%p}}", "z if x%n == y%n"},
	"rules of sets":              {"x0 := 1\ny0 := 1", "x%d contains [x%p, x%p]\ny%d contains [y%p, y%p]", "z if x%n == y%n"},
	"rules of objects":           {"x0 := 1\ny0 := 1", "x%d[k] := [x%p, x%p] if some k in input.a\ny%d[k] := [y%p, y%p] if some k in input.a", "z if x%n == y%n"},
	"rules with names in names":  {"x0 := 1\ny0 := 1", "x%d.a := [x%p, x%p]\ny%d.a := [y%p, y%p]", "z if x%n == y%n"},
	"rules of several values":    {"x0 := 1\ny0 := 1", "x%d := [x%p] if input.a\nx%d := {x%p} if input.b\ny%d := [y%p] if input.a\ny%d := {y%p} if input.b", "z if x%n == y%n"},
	"branches":                   {"x0 := 1\ny0 := 1", "x%d := [x%p] if input.a\nelse := {x%p}\ny%d := [y%p] if input.a\nelse := {y%p}", "z if x%n == y%n"},
	"functions":                  {"f0(_) := 1\ng0(_) := 1", "f%d(a) := [f%p(a), f%p(a)]\ng%d(a) := [g%p(a), g%p(a)]", "z if f%n(1) == g%n(1)"},
	"operands of functions":      {"f0(a) if a == 1\ng0(a) if a == 1", "f%d([a, b]) if {\nf%p(a)\nf%p(b)\n}\ng%d([a, b]) if {\ng%p(a)\ng%p(b)\n}", "z if {\nf%n(input.a)\ng%n(input.a)\n}\ny(a) if {\nf%n(a)\ng%n(a)\n}"},
	"variables":                  {"z if {\na0 := 1\nb0 := 1", "a%d := [a%p, a%p]\nb%d := [b%p, b%p]", "a%n == b%n\n}"},
	"variables unified":          {"z if {\na0 = 1\nb0 = 1", "a%d = [a%p, a%p]\nb%d = [b%p, b%p]", "a%n = b%n\n}"},
	"variables in patterns":      {"z if {\na0 := 1\nb0 := 1", "[a%d, _] := [[a%p, a%p], 1]\n{\"a\": b%d} := {\"a\": [b%p, b%p]}", "a%n == b%n\n}"},
	"comprehensions":             {"x0 := 1\ny0 := 1", "x%d := [[x%p, x%p] | input.a]\ny%d := [[y%p, y%p] | input.a]", "z if x%n == y%n"},
	"comprehensions of objects":  {"x0 := 1\ny0 := 1", "x%d := {k: [x%p, x%p] | some k in input.a}\ny%d := {k: [y%p, y%p] | some k in input.a}", "z if x%n == y%n"},
	"members":                    {"x0 := 1\ny0 := 1", "x%d := [x%p, x%p]\ny%d := [y%p, y%p]", "z if x%n in [y%n]"},
	"members given a name":       {"x0 := 1\ny0 := 1", "x%d := [[e, e] | some e in [x%p]]\ny%d := [[e, e] | some e in [y%p]]", "z if x%n == y%n"},
	"parts of what is larger":    {"x0 := 1\ny0 := 1", `x%d := {"a": [x%p, x%p]}.a` + "\n" + "y%d := [[y%p, y%p]][0]", "z if x%n == y%n"},
	"replacements":               {"q := 1\nx0 := 1\ny0 := 1", "x%d := v if v := q with q as [x%p, x%p]\ny%d := v if v := q with q as [y%p, y%p]", "z if x%n == y%n"},
	"faults that name the type":  {"x0 := 1", "x%d := [x%p, x%p]", "z := x%n + 1"},
	"faults of what is replaced": {"x0 := 1", "x%d := [x%p, x%p]", "z if x%n == 1"},
}

func double(n int, family struct{ first, next, last string }) string {
	return "package lib\n\n" + family.first + repeated(n, "\n"+family.next) + "\n" + strings.ReplaceAll(family.last, "%n", strconv.Itoa(n)) + "\n"
}

func TestTypesThatDoubleAreRefusedBeforeTheyAreCompared(t *testing.T) {
	for name, family := range doubling {
		t.Run(name, func(t *testing.T) {
			problems := Validate(small().with(map[string]string{"b.rego": double(40, family)}), Options{})
			if len(problems) != 1 || problems[0].Code != CodeLimit || problems[0].File != "b.rego" || problems[0].Line < 3 {
				t.Errorf("problems %.300v", problems)
			}
			text := strings.Replace(double(40, family), "package lib", "package b_test", 1)
			_, _, err := Try(t.Context(), small().with(map[string]string{"b_test.rego": text}), Options{})
			if p, ok := errors.AsType[*ProblemsError](err); !ok || p.Problems[0].Code != CodeLimit || p.Problems[0].File != "b_test.rego" {
				t.Errorf("as a test: %.300v", err)
			}
			for _, p := range Validate(small().with(map[string]string{"b.rego": double(3, family)}), Options{}) {
				if p.Code == CodeLimit {
					t.Errorf("a short one: %s", p)
				}
			}
		})
	}
}

func TestManyComparisonsOfLargeTypesAreRefused(t *testing.T) {
	family := doubling["arrays"]
	text := double(9, family) + repeated(600, "\nw%d if {\nx9 == y9\ninput.a == %d\n}") + "\n"
	wide := "package lib\n\nx := {" + repeated(4000, "%d:1,") + "0:1}\ny := {" + repeated(4000, "%d:1,") + "0:1}" + repeated(700, "\nz if {\nx == y\ninput.a == %d\n}") + "\n"
	for _, text := range []string{text, wide} {
		problems := Validate(small().with(map[string]string{"b.rego": text}), Options{})
		if len(problems) != 1 || problems[0].Code != CodeLimit || !strings.Contains(problems[0].Message, "together") {
			t.Errorf("problems %.300v", problems)
		}
	}
}

// TestInferredTypesAreAtLeastAsLargeAsThoseOfOPA compares the weights of the types of all rules.
func TestInferredTypesAreAtLeastAsLargeAsThoseOfOPA(t *testing.T) {
	WithoutRaceDetector(t)
	modules := map[string]string{}
	for name, family := range doubling {
		modules[name] = double(3, family)
	}
	for seed := range uint64(600) {
		n := nesting{rand.New(rand.NewPCG(seed, 24))} //nolint:gosec // a test is to be repeatable
		modules[fmt.Sprint("nesting ", seed)] = fmt.Sprintf(
			"package lib\n\nx := %s\n\ny contains z if {\n\tz := %s\n}\n\nw[k] := [x, v] if some k, v in %s\n\nv := [y, w]\n", n.term(6), n.term(6), n.term(4))
	}
	compared := 0
	for name, text := range modules {
		module, err := ast.ParseModule("b.rego", text)
		if err != nil {
			t.Fatal(err)
		}
		var inferred *inference
		c := ast.NewCompiler().WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{
			Name: "Infer", MetricName: "infer", Stage: func(c *ast.Compiler) *ast.Error { inferred = infer(t.Context(), c); return inferred.fault },
		})
		if c.Compile(map[string]*ast.Module{"b.rego": module}); c.Failed() {
			continue
		}
		for _, r := range c.Modules["b.rego"].Rules {
			ref := r.Ref().GroundPrefix()
			theirs, ours := c.TypeEnv.GetByRef(ref), inferred.extent(inferred.documents.at(ref))
			compared++
			if inferred.weigh(ours) < inferred.weigh(theirs) {
				t.Errorf("%s: %s is %s, and was inferred as %v\n%s", name, ref, theirs, ours, text)
			}
		}
	}
	if compared < 400 {
		t.Errorf("only %d rules compiled", compared)
	}
}
