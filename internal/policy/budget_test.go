package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// chain returns rules s0, s1 and so on, each made of the one before, whose name stands for P.
func chain(first, step string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package pipeguard.admission\n\ns0 := %s\n", first)
	for i := range n {
		fmt.Fprintf(&b, "\ns%d := %s\n", i+1, strings.ReplaceAll(step, "P", fmt.Sprintf("s%d", i)))
	}
	return b.String()
}

// growing are modules in which the document grown asks for more than the budget; most of them double something 24 times.
func growing() map[string]string {
	const l = "\nl := [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]\n"
	const all = "some a in l\n\tsome b in l\n\tsome c in l\n\tsome d in l"
	text, list := `"xxxxxxxxxxxxxxxx"`, "[1, 2, 3, 4]"
	modules := map[string]string{
		"concat":               chain(text, `concat("", [P, P])`, 24),
		"sprintf":              chain(text, `sprintf("%s%s", [P, P])`, 24),
		"sprintf of a list":    chain(text, `sprintf("%v", [[P, P]])`, 24),
		"template string":      chain(text, `$"{P}{P}"`, 24),
		"replace":              chain(text, `replace(P, "x", "xx")`, 24),
		"array.concat":         chain(list, `array.concat(P, P)`, 24),
		"split":                chain(text, `concat("", [P, P])`, 16) + "\nt := split(s16, \"\")\n",
		"regex.split":          chain(text, `concat("", [P, P])`, 16) + "\nt := regex.split(\"x\", s16)\n",
		"json.unmarshal":       chain(text, `concat("", [P, P])`, 16) + "\nt := json.unmarshal(concat(\"\", [\"[\", replace(s16, \"x\", \"1,\"), \"1]\"]))\n",
		"upper again":          chain(text, `concat("", [P, P])`, 20) + "\nt := [lower(s20), upper(s20)]\n",
		"any_suffix_match":     chain(text, `concat("", [P, P])`, 14) + "\nt := strings.any_suffix_match([x | some _ in l; some _ in l; x := s14], [\"a\", s14])\n" + l,
		"a comprehension":      "package pipeguard.admission\n" + l + "\nt := [[a, b, c, d] |\n\t" + all + "\n]\n",
		"a set comprehension":  "package pipeguard.admission\n" + l + "\nt := {x |\n\t" + all + "\n\tx := (((a * 20) + b) * 20 + c) * 20 + d\n}\n",
		"an object":            "package pipeguard.admission\n" + l + "\nt := {x: [a, b, c, d] |\n\t" + all + "\n\tx := (a * 8000) + (b * 400) + (c * 20) + d\n}\n",
		"a partial set":        "package pipeguard.admission\n" + l + "\nt contains sprintf(\"%d %d %d %d\", [a, b, c, d]) if {\n\t" + all + "\n}\n",
		"results of functions": "package pipeguard.admission\n" + l + "\nf(a, b, c, d) := [d, c, b, a] if true\n\nt if {\n\t" + all + "\n\tcount(f(a, b, c, d)) == 5\n}\n",
		"shared parts":         chain("[1]", `f(P)`, 22) + "\nf(x) := [x, x] if true\n",
		"shared in one body":   chain("[1]", `f(P)`, 4) + "\nf(x) := [z, z] if {\n\ty := [x, x, x, x, x, x, x, x]\n\tz := [y, y, y, y, y, y, y, y]\n}\n",
		"unions of objects":    chain(`{"a": 1}`, `object.union({"a": P, "b": P}, {"a": {"c": P}, "b": {"d": P}})`, 22),
	}
	for name, text := range modules {
		grown := "t"
		for i := 24; i > 0 && !strings.Contains(text, "\nt "); i-- {
			if strings.Contains(text, fmt.Sprintf("\ns%d :=", i)) {
				grown = fmt.Sprintf("s%d", i)
				break
			}
		}
		// there is no product among the functions of policies
		text = strings.NewReplacer("(((a * 20) + b) * 20 + c) * 20 + d", "sprintf(\"%d %d %d %d\", [a, b, c, d])",
			"(a * 8000) + (b * 400) + (c * 20) + d", "sprintf(\"%d %d %d %d\", [a, b, c, d])").Replace(text)
		modules[name] = text + "\ngrown if [" + grown + "] != [2]\n"
	}
	return modules
}

func TestWhatGrowsIsEndedByTheBudget(t *testing.T) {
	WithoutRaceDetector(t)
	for name, text := range growing() {
		t.Run(name, func(t *testing.T) {
			m := deciding(`{"allowed": count([1 | grown]) == 1, "findings": []}`).with(map[string]string{"s.rego": text})
			d, err := activated(t, m, patient).Decide(t.Context(), value(t, map[string]any{}))
			if reasonOf(err) != ReasonMemory || d.Allowed {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

func TestWhatGrowsInATestFailsTheTest(t *testing.T) {
	WithoutRaceDetector(t)
	for name, text := range growing() {
		if !slices.Contains([]string{"concat", "a comprehension", "shared parts"}, name) {
			continue
		}
		twice := strings.NewReplacer("19, 20]", "19, 20, 21, 22, 23, 24]").Replace(text)
		m := small().with(map[string]string{"s.rego": twice, "s_test.rego": "package s_test\n\ntest_s if data.pipeguard.admission.grown\n"})
		results, _, err := Try(t.Context(), m, patient)
		if err != nil {
			t.Fatal(err)
		}
		failed := slices.IndexFunc(results, func(r TestResult) bool { return !r.Passed })
		if failed < 0 || results[failed].Name != "test_s" || !strings.Contains(results[failed].Message, errMade.Error()) {
			t.Errorf("%s: got %+v", name, results)
		}
	}
}

func TestEveryAllowedBuiltinHasACostOrIsModest(t *testing.T) {
	for _, name := range allowedBuiltins {
		if _, costly := costs[name]; costly == slices.Contains(modest, name) {
			t.Errorf("%s is in costs: %v, and must be there or in modest", name, costly)
		}
	}
}

// OPA reads no such number, but whoever builds an input by its own types may bring one.
func TestANumberWithALargeExponentIsNotWrittenOut(t *testing.T) {
	large, one := ast.NewTerm(ast.Number("1e100000000")), ast.IntNumberTerm(1)
	for name, operands := range map[string][]*ast.Term{
		"plus": {one, large}, "minus": {large, one}, "format_int": {large, ast.IntNumberTerm(10)}, "sum": {ast.ArrayTerm(one, large)},
	} {
		if n := costs[name](operands); n <= maxMade {
			t.Errorf("%s costs %d bytes", name, n)
		}
	}
}

func TestAnEvaluationWithoutABudgetMakesNothing(t *testing.T) {
	for _, query := range []string{`concat("", ["a", "b"])`, `walk([1], x)`, `upper("a")`, `internal.charge_memory(1, 0, [1])`} {
		if _, err := rego.New(rego.Query(query), rego.StrictBuiltinErrors(true)).Eval(t.Context()); !errors.Is(err, errUnbounded) {
			t.Errorf("%s: %v", query, err)
		}
		if _, err := rego.New(rego.Query(query), rego.StrictBuiltinErrors(true)).Eval(Bounded(t.Context())); err != nil {
			t.Errorf("%s with a budget: %v", query, err)
		}
	}
}

func TestEvaluationsAtOneTimeShareAPool(t *testing.T) {
	var p pool
	var all []*budget
	var releases []func()
	begin := func() *budget {
		ctx, release := withBudget(t.Context(), &p, nil)
		all, releases = append(all, budgetOf(ctx)), append(releases, release)
		return budgetOf(ctx)
	}
	for range maxMadeTogether / (maxMade - ownShare) {
		if err := begin().take(maxMade); err != nil {
			t.Fatal(err)
		}
	}
	rest := maxMadeTogether - p.taken.Load()
	one := begin()
	for _, step := range []struct {
		n    int64
		want error
	}{
		{ownShare, nil}, {rest, nil}, {1, errMadeTogether}, {maxMade, errMade}, {-1, errMade},
	} {
		if err := one.take(step.n); !errors.Is(err, step.want) {
			t.Errorf("%d bytes: got %v, want %v", step.n, err, step.want)
		}
	}
	if err := begin().take(ownShare); err != nil {
		t.Errorf("its own share: %v", err)
	}
	releases[0]()
	if err := one.take(1); err != nil {
		t.Errorf("after another ended: %v", err)
	}
	for _, release := range releases[1:] {
		release()
	}
	if n := p.taken.Load(); n != 0 {
		t.Errorf("%d bytes stay taken", n)
	}
	if err := all[0].take(1); !errors.Is(err, errMade) {
		t.Errorf("beyond its own bound: %v", err)
	}
}

func TestModulesCannotNameTheCharge(t *testing.T) {
	for _, rule := range []string{
		"x if internal.charge_memory(1, 0)", "x if f(1) with internal.charge_memory as f", "x if f(1) with f as internal.charge_memory",
		`x if internal["charge_memory"](1, 0)`,
	} {
		m := small().with(map[string]string{"b.rego": "package pipeguard.admission\n\nf(x) if x\n\n" + rule + "\n"})
		if problems := Validate(m, Options{}); len(problems) == 0 || problems[0].File != "b.rego" {
			t.Errorf("%s: got %v", rule, problems)
		}
	}
}
