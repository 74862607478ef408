package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// The documents on which the modules below build. The numbers of fractions have one hash, as have pairs of one sum.
const weights = `package pipeguard.admission

l := ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]

n2 := [concat("", [a, b]) | some a in l; some b in l]

n3 := [concat("", [a, b]) | some a in n2; some b in l]

m3 := [concat("", [b, a]) | some a in l; some b in n2]

fractions := {to_number(concat("", ["0.1", x, "1"])): 1 | some x in n3}

same := {to_number(concat("", ["0.1", x, "10"])): 1 | some x in n3}

pairs contains [to_number(x), 1000 - to_number(x)] if some x in n3

many := [n3 | some _ in n2]

more := [m3 | some _ in n2]

`

// Each of these once took from seconds to minutes in one step that nothing interrupts, or all of the stack, which ends the process.
func TestNothingTooHeavyToBeComparedComesToBe(t *testing.T) {
	WithoutRaceDetector(t)
	text := func(s string) string { return chain(`"`+s+`"`, `concat("", [P, P])`, 15) }
	for name, c := range map[string]struct {
		module string
		reason Reason
	}{
		"arrays in arrays":                          {"a := [many | some _ in n2]\n\nb := [more | some _ in n2]\n\ngrown if a == b", ReasonTimeout},
		"arrays of nothing":                         {"e := [[] | some _ in n3; some _ in n2]\n\nf := [[] | some _ in n3; some _ in n2]\n\ngrown if e == f", ReasonMemory},
		"objects in objects":                        {"a := {i: o | some i in n3}\n\no := {i: 1 | some i in n2}\n\ngrown if a == {}", ReasonMemory},
		"two that are made where they are compared": {"grown if [more | some _ in n3] == [many | some _ in n3]", ReasonTimeout},
		"such under not":                            {"grown if not [more | some _ in n3] == [many | some _ in n3]", ReasonTimeout},
		"such under with":                           {"grown if [more | some _ in n3] == [input.x | some _ in n3] with input.x as many", ReasonTimeout},
		"such in a head":                            {"s contains x if x := [many | some _ in n3]\n\ny := [more | some _ in n3]\n\ngrown if s[y]", ReasonTimeout},
		"numbers of one hash":                       {"a := [fractions | some _ in n3]\n\nb := [same | some _ in n3]\n\ngrown if a == b", ReasonTimeout},
		"such by an object":                         {"a := {i: fractions | some i in n2}\n\ngrown if object.union(a, a) == {}", ReasonTimeout},
		"such by a function":                        {"a := {i: fractions | some i in n2}\n\ngrown if json.remove(a, [\"x\"]) == {}", ReasonTimeout},
		"pairs of one hash":                         {"a := [pairs | some _ in n2]\n\ngrown if a == []", ReasonTimeout},
		"sets of one hash by union":                 {"a := {s | some x in n3; some y in l; s := {to_number(concat(\"\", [\"0.\", y, x])), concat(\"\", [x, y])}}\n\ngrown if count(union(a)) == 1", ReasonTimeout},
		"members of a partial set":                  {"s contains [x, many] if some x in n3\n\ngrown if count([1 | some y in s]) == 1", ReasonTimeout},
		"members of a partial object":               {"s[x] := many if some x in n3\n\ngrown if s == {}", ReasonTimeout},
		"members of names":                          {"s.a := many\n\ns[x].b := many if some x in n3\n\ngrown if s == {}", ReasonTimeout},
		"members of a set with a name":              {"s.t contains [x, many] if some x in n3\n\ngrown if count([1 | some y in s.t]) == 1", ReasonTimeout},
		"members of sets with names":                {"s[y].t contains [x, many] if {\n\tsome x in n3\n\tsome y in l\n}\n\ngrown if count([1 | some y in s[\"1\"].t]) == 1", ReasonTimeout},
		"members with several names":                {"s[x][y] := many if {\n\tsome x in n3\n\tsome y in l\n}\n\ngrown if s == {}", ReasonTimeout},
		"copies of an input":                        {"l0 if input.a != 1\n\nl1 if l0 with input.c.d as 1\n\nl2 if l1 with input.c as 1 with input.d as 2\n\ngrown if l2 with input.a as many with input.b as many", ReasonMemory},
		"copies of a whole input":                   {"l0 if input.a != 1\n\nl1 if l0 with input.c.d as 1\n\nl2 if l1 with input.c as 1\n\ngrown if l2 with input as {\"a\": many, \"b\": many}", ReasonMemory},
		"copies of a whole input that is a rule":    {"l0 if input.a != 1\n\nl1 if l0 with input.c.d as 1\n\nl2 if l1 with input.c as 1\n\nall := {\"a\": many, \"b\": many}\n\ngrown if l2 with input as all", ReasonMemory},
		"copies of an input at once":                {"l0 if input.a.b != 1\n\ngrown if l0 with input.a as {\"b\": many, \"c\": many, \"d\": many, \"e\": many} with input.a.b as 1", ReasonMemory},
		"copies of documents":                       {"l0 if data.x.a != 1\n\nl1 if l0 with data.x.c as 1\n\nl2 if l1 with data.x.e as 1\n\ngrown if l2 with data.x.a as many with data.x.b as many", ReasonMemory},
		"a heavy input":                             {"l0 if input.a != 1\n\ngrown if l0 with input." + strings.Join(strings.Split(strings.Repeat("a", 21), ""), " as many with input.x") + " as many", ReasonTimeout},
		"one that is written out":                   {"grown if [" + strings.Repeat("many, ", 100) + "1] == [" + strings.Repeat("more, ", 100) + "2]", ReasonTimeout},
		"one that is written out under not":         {"grown if { x := many; not [" + strings.Repeat("x, ", 100) + "1] == [" + strings.Repeat("x, ", 100) + "2] }", ReasonTimeout},
		"one that is both ways written out":         {"grown if { x := many; y := more; [a, " + strings.Repeat("x, ", 100) + "1] = [y, " + strings.Repeat("y, ", 100) + "b] }", ReasonTimeout},
		"the result of a function":                  {"f(x) := {\"a\": [" + strings.Repeat("x, ", 50) + "x]}\n\ngrown if f(f(n3)) == f(f(m3))", ReasonTimeout},
		"concatenations":                            {strings.TrimPrefix(chain("[many]", `array.concat(P, P)`, 12), "package pipeguard.admission\n") + "\ngrown if s12 == []", ReasonTimeout},
		"copies of a long text":                     {strings.TrimPrefix(text("0123456789012345"), "package pipeguard.admission\n") + "\na := [s15 | some _ in n3]\n\ngrown if a == []", ReasonTimeout},
		"keys that are long numbers":                {"a := {to_number(concat(\"\", [x, x, x, x, x, x, x, x, x])) | some x in n3}\n\nb := [a | some _ in n2]\n\ngrown if b == []", ReasonTimeout},
		"what every looks at":                       {"grown if { every x in [many | some _ in n3] { x == many } }", ReasonTimeout},
		"a template":                                {"grown if $\"{[many | some _ in n3]}\" == \"\"", ReasonTimeout},
		"an operand":                                {"grown if count([many | some _ in n3]) == 1", ReasonTimeout},
		"a comprehension in one":                    {"grown if count([[x, more] | some x in n3; [many, x] != []]) == 1", ReasonTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			m := deciding(`{"allowed": count([1 | grown]) == 1, "findings": []}`).with(map[string]string{"s.rego": weights + c.module + "\n"})
			d, err := activated(t, m, patient).Decide(t.Context(), value(t, map[string]any{}))
			if reasonOf(err) != c.reason || c.reason == ReasonTimeout && !strings.Contains(err.Error(), "steps") || d.Allowed {
				t.Errorf("got %+v, %v", d, err)
			}
		})
	}
}

// What is shared and small, and what is as large as the input, is honest.
func TestHonestCollectionsAreBorne(t *testing.T) {
	WithoutRaceDetector(t)
	for name, module := range map[string]string{
		"all mounts":             "all := [m | some m in input.mounts]\n\ngrown if all == input.mounts",
		"all of several":         "grown if count([m | some list in [input.mounts, input.unmounted]; some m in list]) == 4000",
		"mounts by their place":  "by[m.field] := m if some m in input.mounts\n\ngrown if count(by) == 4000",
		"a finding of each":      "found contains {\"message\": sprintf(\"%s %s\", [m.path, m.field]), \"field\": m.field, \"mount\": m} if some m in input.mounts\n\ngrown if count(found) == 4000",
		"names of few":           "grown if count({[m.pipe, n.pipe] | some m in array.slice(input.mounts, 0, 60); some n in array.slice(input.mounts, 0, 60)}) == 3600",
		"pairs of small numbers": "n := {i | some i, _ in input.mounts; i < 40}\n\ngrown if count({[i, j] | some i in n; some j in n}) == 1600",
	} {
		m := deciding(`{"allowed": count([1 | grown]) == 1, "findings": []}`).with(map[string]string{"s.rego": "package pipeguard.admission\n\n" + module + "\n"})
		d, err := activated(t, m, patient).Decide(t.Context(), manyMounts(t, 4000))
		if err != nil || !d.Allowed {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

// What is found to be equal in one step is made in it, as large as may be.
func TestAVariableIsNotUsedInTheEquationThatFindsIt(t *testing.T) {
	for rule, isRefused := range map[string]bool{
		"x if { [a, b, c] = [[b, b], [c, c], input.x]; a == 1 }":       true,
		"x if { [a, {\"k\": b}] = [{\"l\": b}, {\"k\": input.x}]; a }": true,
		"x if { [a, b] = [input.x, input.y]; a == b }":                 false,
		"x if { y := input.x; [a, b] = [y, y]; a == b }":               false,
		"x if { [a, a] = input.x; a }":                                 false,
		"x if { {\"a\": a, \"b\": b} = input.x; [b, c] = [a, a]; c }":  false,
		"x if input.x[_] = [_, _]":                                     false,
	} {
		problems := Validate(small().with(map[string]string{"s.rego": "package other.rules\n\n" + rule + "\n"}), Options{})
		if got := strings.Contains(fmt.Sprint(problems), "stands a second time"); got != isRefused || !isRefused && len(problems) > 0 {
			t.Errorf("%s: %v", rule, problems)
		}
	}
}

func TestWhatStandsInForEverythingIsRefused(t *testing.T) {
	for rule, want := range map[string]string{
		"x if y with data.system as {}":                              "with data.system",
		"x if y with data.system.pipeguard_weight as 0":              "with data.system.pipeguard_weight",
		"x if y with data.system.pipeguard_weight.a as 0":            "with data.system.pipeguard_weight.a",
		"x if y with data.a as 0 with input as {} with input.b as 1": "",
	} {
		problems := Validate(small().with(map[string]string{"s.rego": "package other.rules\n\ny if input.a == data.a\n\n" + rule + "\n"}), Options{})
		if want == "" && len(problems) > 0 || want != "" && !strings.Contains(fmt.Sprint(problems), want) {
			t.Errorf("%s: %v", rule, problems)
		}
	}
}

// Tests put one thing in the place of another in every way that OPA knows.
func TestWhateverStandsInIsWeighedAndWorks(t *testing.T) {
	m := small().with(map[string]string{
		"s.rego": "package lib\n\ndouble(x) := x\n\ntriple(x) := [x, x, x]\n\nnamed := input.name\n\nlist := [1, 2]\n",
		"s_test.rego": `package s_test

import data.lib

other(x) := [x, x, x]

documents := {"name": "x"}

test_function if [1, 1, 1] == lib.double(1) with lib.double as lib.triple

test_function_of_a_test if [1, 1, 1] == lib.double(1) with lib.double as other

test_result if lib.double(1) == 7 with lib.double as 7

test_builtin if count([1]) == 7 with count as 7

test_document if lib.named == "x" with input as documents

test_part if lib.named == "y" with input as documents with input.name as "y"

test_data if lib.list == [3] with lib.list as [3] with data.x.y as documents

test_every if {
	every c in [{"a": 1}, {"a": 2}] {
		n := input.b.a with input.b as c
		n == c.a
	}
}

test_not if not input.b.c with input as {"b": {"c": false}}

test_collected if {
	x := {y | some y in input.b} with input.b as [1, 2, 2]
	x == {1, 2}
}
`,
	})
	results, _, err := Try(t.Context(), m, patient)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, r := range results {
		if r.Package == "data.s_test" || r.Package == "s_test" {
			if ran++; !r.Passed {
				t.Errorf("%s: %s", r.Name, r.Message)
			}
		}
	}
	if ran != 10 {
		t.Errorf("%d tests ran: %+v", ran, results)
	}
}

func TestAPackageIsNoValue(t *testing.T) {
	for rule, want := range map[string]string{
		"x := data.pipeguard":                                  "s.rego:3:6: rego_compile_error: data.pipeguard, which is a whole package",
		"x := data.pipeguard.other":                            "",
		"x if data.pipeguard[y].z":                             "",
		"x := [p | some p in data.pipeguard]":                  "whole package",
		"x if input.a with input.a as data.pipeguard":          "whole package",
		"x if data.pipeguard.a with data.pipeguard as input.a": "",
	} {
		problems := Validate(small().with(map[string]string{"s.rego": "package other.rules\n\n" + rule + "\n", "lib.rego": "package pipeguard.lib\n\nz := 1\n"}), Options{})
		switch {
		case want == "" && strings.Contains(fmt.Sprint(problems), "whole package"):
			t.Errorf("%s: %v", rule, problems)
		case want != "" && !strings.Contains(fmt.Sprint(problems), want):
			t.Errorf("%s: %v, want %s", rule, problems, want)
		}
	}
}

// building is a module of rules that build on one another.
func building(r *rand.Rand, rules int) string {
	pick := func(i int) string { return fmt.Sprintf("s%d", max(0, i-1-r.IntN(3))) }
	var b strings.Builder
	b.WriteString(weights + "s0 := [\"x\", {\"y\": [1]}, {0.11, 0.12}]\n\nf(x) := [x, x]\n")
	for i := 1; i <= rules; i++ {
		p, q := pick(i), pick(i)
		shapes := []string{
			"s%[1]d := [%[2]s | some _ in n2]", "s%[1]d := [%[2]s, %[3]s, [%[2]s]]", "s%[1]d := {i: %[2]s | some i in l}", "s%[1]d := {[%[2]s, i] | some i in l}",
			"s%[1]d := array.concat([%[2]s], [%[3]s, %[3]s])", "s%[1]d := object.union({\"a\": %[2]s}, {\"b\": %[3]s})", "s%[1]d := f(%[2]s)", "s%[1]d contains %[2]s",
			"s%[1]d[i] := %[2]s if some i in l", "s%[1]d := {%[2]s, %[3]s, fractions}", "s%[1]d := {x: %[2]s | some x in [%[2]s, %[3]s, n3]}", "s%[1]d := [x | some x in [%[2]s]; x != %[3]s]",
			"s%[1]d.t contains [%[2]s, i] if some i in l", "s%[1]d[i].t := %[2]s if some i in l", "s%[1]d := x if { [x, _] := [%[2]s, %[3]s] }",
			"s%[1]d := {\"a\": {\"b\": %[2]s, \"c\": %[3]s}}", "s%[1]d := union({{%[2]s}, {%[3]s}})", "s%[1]d := sort([%[2]s, %[3]s, %[2]s])", "s%[1]d.a := %[2]s\n\ns%[1]d.b := %[3]s",
		}
		fmt.Fprintf(&b, "\n"+shapes[r.IntN(len(shapes))]+"%[4]s\n", i, p, q, "")
	}
	return b.String()
}

// As a tree, no value of any rule is larger than what can be borne, by a count that knows nothing of how it was made.
func TestNoRuleHasAValueThatIsTooHeavy(t *testing.T) {
	WithoutRaceDetector(t)
	const rules = 10
	tooHeavy, made := 0, 0
	for seed := range uint64(60) {
		module := building(rand.New(rand.NewPCG(seed, 1)), rules) //nolint:gosec // the same modules each time
		p, problems := compile(t.Context(), deciding(`{"allowed": true, "findings": []}`).with(map[string]string{"s.rego": module}), patientOptions(t))
		if len(problems) == 1 && strings.Contains(problems[0].Message, "the type of a value is too large") {
			continue
		}
		if len(problems) > 0 {
			t.Fatalf("%s\n%v", module, problems)
		}
		for i := 1; i <= rules; i++ {
			v, err := p.valueOf(t.Context(), fmt.Sprintf("data.pipeguard.admission.s%d", i))
			if err != nil {
				if reason := reasonOf(err); reason != ReasonMemory && reason != ReasonTimeout {
					t.Fatalf("seed %d, rule %d: %v", seed, i, err)
				}
				tooHeavy++
				continue
			}
			made++
			if n := treeOf(ast.NewTerm(v)); n > maxWeight {
				t.Errorf("seed %d: rule %d has %d parts\n%s", seed, i, n, module)
			}
		}
	}
	t.Logf("%d values, and %d were too heavy", made, tooHeavy)
	if made < 100 || tooHeavy < 50 {
		t.Errorf("%d values, and %d were too heavy: too few of one kind", made, tooHeavy)
	}
}

// treeOf is how many values there are in one as a tree, up to ten times as many as can be borne.
func treeOf(t *ast.Term) (n int) {
	var count func(t *ast.Term) bool
	count = func(t *ast.Term) bool {
		n++
		switch v := t.Value.(type) {
		case *ast.Array:
			v.Until(count)
		case ast.Set:
			v.Until(count)
		case ast.Object:
			v.Until(func(k, e *ast.Term) bool { return count(k) || count(e) })
		}
		return n > 10*maxWeight
	}
	count(t)
	return n
}

// valueOf evaluates a query within a budget of its own.
func (p *program) valueOf(ctx context.Context, text string) (ast.Value, error) {
	q, err := p.prepare(ctx, text, p.data)
	if err != nil {
		return nil, err
	}
	ctx, release := withBudget(ctx, nil, nil)
	defer release()
	return evaluate(ctx, q, ast.NewObject(), topdown.NewCancel())
}
