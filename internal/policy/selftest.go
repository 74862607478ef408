package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// TestResult is the outcome of one test rule.
type TestResult struct {
	Package  string        `json:"package"`
	Name     string        `json:"name"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Passed   bool          `json:"passed"`
	Skipped  bool          `json:"skipped,omitempty"` // its name begins with todo_test_
	Duration time.Duration `json:"duration"`
	Message  string        `json:"message,omitempty"` // why it did not pass
}

// allTests and noTest are patterns of names.
const allTests, noTest = "", "^$"

// test compiles the modules with their tests and runs those whose names match, all within the budget of ctx. OPA's runner evaluates on goroutines of its own: unlike one
// of a decision or of the compiler, a panic there would end the process.
func (p *program) test(ctx context.Context, names string) (out []TestResult, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, &ProblemsError{[]Problem{{Code: CodeInternal, Message: fmt.Sprintf("the compiler of the tests panicked: %v", v)}}}
		}
	}()
	store := inmem.NewFromASTObject(p.data.object)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	defer store.Abort(context.WithoutCancel(ctx), txn)
	compiler := newCompiler(ctx, capabilities(testBuiltin, chargeBuiltin, weightBuiltin, withBuiltin), store, txn)
	results, err := tester.NewRunner().SetCompiler(compiler).SetStore(store).SetModules(p.parsed).Filter(names).
		CapturePrintOutput(false).RaiseBuiltinErrors(true).SetTimeout(longest*p.options.TestTimeout).RunTests(ctx, txn) // ctx ends earlier
	if err != nil {
		return nil, &ProblemsError{sortProblems(problemsOf("", err))}
	}
	out = []TestResult{}
	for r := range results { // always to the end: the runner's goroutines wait for their reader
		out = append(out, testResult(r))
	}
	during := ""
	if n := len(out); n > 0 { // the one that came last was stopped
		during = fmt.Sprintf(", during %s.%s (%s:%d)", out[n-1].Package, out[n-1].Name, out[n-1].File, out[n-1].Line)
	}
	slices.SortFunc(out, func(a, b TestResult) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Name, b.Name))
	})
	if err := context.Cause(ctx); err != nil {
		return out, fmt.Errorf("run policy tests: stopped after %d%s: %w", len(out), during, err)
	}
	return out, nil
}

// Try compiles m, runs its tests, in the order of file and line, and asks the checks, as an activation does. A refusal is why an activation would not
// take m; an error means that this could not be found out. Tests have the capabilities of a decision, and an error of a builtin fails a test as it
// fails a decision. What m adds to is compiled with it, but not tried: it is tried by itself.
func Try(ctx context.Context, m Modules, o Options) (results []TestResult, refusal, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, nil, err
	}
	p, problems := compile(ctx, m, o)
	if len(problems) > 0 {
		return nil, nil, &ProblemsError{problems}
	}
	ctx, cancel := within(ctx, o.TestTimeout, o.ProcessTime)
	defer cancel()
	if results, err = p.ownTests(ctx, m); err != nil {
		return nil, nil, err
	}
	_, refusal = p.accept(ctx, m, results)
	return results, refusal, nil
}

// try runs the tests of m, of which p was compiled, and returns what may decide.
func (p *program) try(ctx context.Context, m Modules) (*snapshot, error) {
	results, err := p.ownTests(ctx, m)
	if err != nil {
		return nil, err
	}
	return p.accept(ctx, m, results)
}

// ownTests runs the tests of m. Only modules that add to a base may do without.
func (p *program) ownTests(ctx context.Context, m Modules) ([]TestResult, error) {
	if m.mayBeUntested() {
		return nil, nil
	}
	return p.test(Bounded(ctx), allTests)
}

// accept returns what decides by m, whose tests had these results, if they passed and the checks hold.
func (p *program) accept(ctx context.Context, m Modules, results []TestResult) (*snapshot, error) {
	passed := 0
	if !m.mayBeUntested() {
		var err error
		if passed, err = requirePassed(results); err != nil {
			return nil, err
		}
	}
	s, err := p.snapshot(ctx, m.revision(p.data), p.data)
	if err != nil {
		return nil, err
	}
	s.tests, s.companion = passed, m.Companion
	checks := m.Checks
	if m.Base != nil {
		checks = slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return c.OfBase })
	}
	if err := p.runChecks(ctx, s, checks); err != nil {
		return nil, err
	}
	return s, nil
}

func testResult(r *tester.Result) TestResult {
	t := TestResult{
		Package: strings.TrimPrefix(r.Package, "data."), Name: r.Name, Passed: r.Pass(), Skipped: r.Skip, Duration: r.Duration,
	}
	if r.Location != nil {
		t.File, t.Line = r.Location.File, r.Location.Row
	}
	switch {
	case r.Error != nil:
		t.Message = r.Error.Error()
	case r.Fail:
		t.Message = "not true"
		var cases []string
		for name, sub := range r.SubResults.Iter {
			if sub.Fail && len(sub.SubResults) == 0 {
				cases = append(cases, strings.Join(name, "/"))
			}
		}
		if len(cases) > 0 {
			t.Message += " for " + strings.Join(cases, ", ")
		}
	}
	return t
}

var errNoTests = errors.New("run policy tests: there are none: a policy that nothing tests is not activated; add a *_test.rego file")

// TestsError is the error of an activation whose modules' own tests do not pass.
type TestsError struct{ Failed []TestResult }

// Error names each test that did not pass, one a line.
func (e *TestsError) Error() string {
	return fmt.Sprintf("run policy tests: %v", e.Unwrap())
}

// Unwrap returns what Error names as a list of errors that errors.Join has made.
func (e *TestsError) Unwrap() error {
	errs := make([]error, len(e.Failed))
	for i, r := range e.Failed {
		errs[i] = fmt.Errorf("%s:%d: test %s.%s: %s", r.File, r.Line, r.Package, r.Name, r.Message)
	}
	return errors.Join(errs...)
}

// requirePassed returns how many tests passed, or an error that names each that did not. A skipped test is not a test.
func requirePassed(results []TestResult) (int, error) {
	var failed []TestResult
	passed := 0
	for _, r := range results {
		switch {
		case r.Passed:
			passed++
		case !r.Skipped:
			failed = append(failed, r)
		}
	}
	if len(failed) > 0 {
		return 0, &TestsError{failed}
	}
	if passed == 0 {
		return 0, errNoTests
	}
	return passed, nil
}
