package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// OPA's own runner finds the same tests with the same outcomes.
func TestTestsAreThoseOfOPAsRunner(t *testing.T) {
	WithoutRaceDetector(t)
	m := defaultPolicy(t).with(map[string]string{"strange_test.rego": `package strange_test

test_twice if 1 == 1

test_twice if 1 == 2

todo_test_later if 1 == 2

test_cases[name] if {
	some name, n in {"one": 1, "two": 2}
	n < 2
}

test.test_inner if 1 == 1

test_inner.test_innermost if 1 == 2

not_a_test_rule if 1 == 1

atest_ if 1 == 1

test_undefined if data.strange_test.nothing

nothing if 1 == 2

test_error if to_number("x")

test_sets contains 1

test_nested[group][name] if {
	some group, names in {"a": {"one": 1, "two": 2}, "b": {"three": 3}}
	some name, n in names
	n != 2
}

test_value := 1

test_text := "x"

test_conflict := x if some x in [true, false]

test_numbers[n] if {
	some n in [1, 2]
	n == 1
}

test_call(_) := true

test["x y"] if 1 == 1
`})
	p, problems := compile(t.Context(), m, patientOptions(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s, err := p.suite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := inmem.NewFromASTObject(p.data.object)
	results, err := tester.NewRunner().SetCompiler(s.compiler).SetStore(store).RaiseBuiltinErrors(true).RunTests(Bounded(t.Context()), storage.NewTransactionOrDie(t.Context(), store))
	if err != nil {
		t.Fatal(err)
	}
	oneByOne, err := s.runAll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for r := range results {
		failed := ""
		for name, sub := range r.SubResults.Iter {
			if sub.Fail && len(sub.SubResults) == 0 {
				failed += " " + strings.Join(name, "/")
			}
		}
		hasError := r.Error != nil
		want = append(want, fmt.Sprintf("data.%s.%s %s:%d passed %v skipped %v error %v%s", strings.TrimPrefix(r.Package, "data."), r.Name, r.Location.File, r.Location.Row, r.Pass(), r.Skip, hasError, failed))
	}
	for _, r := range oneByOne {
		cases, _ := strings.CutPrefix(r.Message, notTrue)
		failed := strings.ReplaceAll(strings.TrimPrefix(cases, " for"), ",", "")
		hasError := r.Message != "" && cases == r.Message
		if hasError {
			failed = ""
		}
		got = append(got, fmt.Sprintf("data.%s.%s %s:%d passed %v skipped %v error %v%s", r.Package, r.Name, r.File, r.Line, r.Passed, r.Skipped, hasError, failed))
	}
	if !slices.IsSortedFunc(oneByOne, func(a, b TestResult) int { return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line)) }) {
		t.Error("they are not in the order of file and line")
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 150 || !slices.Equal(want, got) {
		t.Errorf("%d tests together and %d one by one: %s", len(want), len(got), gocmp.Diff(want, got))
	}
}

// A loop begins millions of cases within its time, and OPA keeps each.
func TestTheCasesOfATestAreBounded(t *testing.T) {
	WithoutRaceDetector(t)
	l := make([]string, 200)
	for i := range l {
		l[i] = fmt.Sprint(i)
	}
	list := "package many_test\n\nl := [" + strings.Join(l, ", ") + "]\n\n"
	for name, c := range map[string]struct{ rule, want string }{
		"many of few names": {"test_x[k] if {\n\tsome _ in l\n\tsome k in l\n\tk == -1\n}\n", "not true for 0, 1, 10, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 11, 110, 111, 112, 113, 114, 115 and 180 more"},
		"many names":        {"test_x[k] if {\n\tsome i in l\n\tsome j in l\n\tk := [i, j]\n\ti == -1\n}\n", "it has more than 10000 cases, or names of more than 1048576 bytes together"},
		"no case":           {"test_x[k] if {\n\tsome k in [m | some m in l; m < 0]\n\tk == 1\n}\n", "not true for any case: there is none"},
	} {
		results, _, err := Try(t.Context(), small().with(map[string]string{"many_test.rego": list + c.rule}), patient)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(results, func(r TestResult) bool { return r.Name == "test_x" })
		if i < 0 || results[i].Passed || !strings.HasPrefix(results[i].Message, c.want) {
			t.Errorf("%s: %.300v", name, results)
		}
	}
}

// A test that took 23 s passed, each time that a replica started.
func TestATestHasTheTimeOfSomeDecisions(t *testing.T) {
	l := strings.TrimSuffix(strings.Repeat("1, ", 1000), ", ")
	m := small().with(map[string]string{"slow_test.rego": "package slow_test\n\nl := [" + l + "]\n\ntest_slow if {\n\tsome a in l\n\tsome b in l\n\tsome c in l\n\tsome d in l\n\ta + b + c + d == 0\n}\n\ntest_next if 1 == 1\n"})
	results, refusal, err := Try(t.Context(), m, Options{Timeout: 5 * time.Millisecond, TestTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	failed := slices.IndexFunc(results, func(r TestResult) bool { return r.Name == "test_slow" })
	if failed < 0 || results[failed].Passed || results[failed].Message != "it takes longer than 50ms, which is 10 times what a decision may take" {
		t.Errorf("got %+v", results)
	}
	if _, isOf := errors.AsType[*TestsError](refusal); !isOf || !strings.Contains(fmt.Sprint(refusal), "slow_test.rego:5: test slow_test.test_slow: it takes longer") {
		t.Errorf("got %v", refusal)
	}
	if next := results[failed+1]; next.Name != "test_next" || !next.Passed { // the others have their own time
		t.Errorf("got %+v", next)
	}
}
