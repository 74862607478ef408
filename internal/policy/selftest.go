package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/open-policy-agent/opa/v1/topdown"
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

// testShare is how many times as long as a decision a test may take, which can ask for some. All tests together have TestTimeout.
const testShare = 10

// suite is the modules of a program, compiled with their tests. It is for one caller, and must be closed.
type suite struct {
	options  *Options
	compiler *ast.Compiler
	runner   *tester.Runner
	txn      storage.Transaction
	close    func()
}

// suite compiles the modules with their tests.
func (p *program) suite(ctx context.Context) (s *suite, err error) {
	defer func() {
		if v := recover(); v != nil {
			s, err = nil, &ProblemsError{[]Problem{{Code: CodeInternal, Message: fmt.Sprintf("the compiler of the tests panicked: %v", v)}}}
		}
	}()
	store := inmem.NewFromASTObject(p.data.object)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	s = &suite{options: &p.options, txn: txn, close: func() { store.Abort(context.WithoutCancel(ctx), txn) }}
	s.compiler = newCompiler(ctx, capabilities(testBuiltin, chargeBuiltin, weightBuiltin, withBuiltin), store, txn)
	s.runner = tester.NewRunner().SetCompiler(s.compiler).SetStore(store).CapturePrintOutput(false).RaiseBuiltinErrors(true).
		SetTimeout(longest * p.options.TestTimeout) // what is run ends earlier
	if _, err := s.run(ctx, s.runner.SetModules(p.parsed).Filter("^$")); err != nil { // none of them, but it compiles
		s.close()
		return nil, &ProblemsError{sortProblems(problemsOf("", err))}
	}
	s.runner.SetModules(nil).Filter("") // or it would compile again
	return s, nil
}

// run runs the tests that are left to the runner, to the end: its goroutines wait for their reader. Unlike one of a decision or of the compiler, a panic
// on those would end the process.
func (s *suite) run(ctx context.Context, r *tester.Runner) (out []*tester.Result, err error) {
	results, err := r.RunTests(ctx, s.txn)
	if err != nil {
		return nil, err
	}
	for one := range results {
		out = append(out, one)
	}
	return out, nil
}

// tests returns modules of one rule each, in the order of file and line: all tests are among them. Which rules are tests is for the runner to say.
func (s *suite) tests() (out []*ast.Module) {
	for _, m := range s.compiler.Modules {
		for _, r := range m.Rules {
			if strings.Contains(r.Head.Ref().String(), tester.TestPrefix) {
				out = append(out, &ast.Module{Package: m.Package, Rules: []*ast.Rule{r}})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b *ast.Module) int {
		return cmp.Or(a.Rules[0].Loc().Compare(b.Rules[0].Loc()), a.Rules[0].Head.Ref().Compare(b.Rules[0].Head.Ref()))
	})
	return out
}

// runAll runs one test after another, each with the memory of a decision and the time of some.
func (s *suite) runAll(ctx context.Context) ([]TestResult, error) {
	out := []TestResult{}
	for _, m := range s.tests() {
		bounded, release := withBudget(ctx, nil)
		results, err := s.runOne(bounded, m)
		release()
		if err != nil {
			return out, err
		}
		if err := context.Cause(ctx); err != nil {
			at := m.Rules[0].Loc()
			return out, fmt.Errorf("run policy tests: stopped after %d, during %s.%s (%s:%d): %w",
				len(out), strings.TrimPrefix(m.Package.Path.String(), "data."), m.Rules[0].Head.Ref(), at.File, at.Row, err)
		}
		out = append(out, results...)
	}
	return out, nil
}

// runOne runs the test that is the one rule of m, with the budget of ctx. If it is none, there is no result.
func (s *suite) runOne(ctx context.Context, m *ast.Module) (out []TestResult, err error) {
	atMost := testShare * s.options.Timeout
	ctx, stop := within(ctx, atMost, s.options.ProcessTime)
	defer stop()
	all := s.compiler.Modules
	s.compiler.Modules = map[string]*ast.Module{"": m} // which the runner goes through
	defer func() { s.compiler.Modules = all }()
	results, err := s.run(ctx, s.runner)
	for _, r := range results {
		one := testResult(r)
		if topdown.IsCancel(r.Error) {
			one.Message = fmt.Sprintf("it takes longer than %v, which is %d times what a decision may take", atMost, testShare)
		}
		out = append(out, one)
	}
	return out, err
}

// test compiles the modules with their tests, and runs these.
func (p *program) test(ctx context.Context) ([]TestResult, error) {
	s, err := p.suite(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.runAll(ctx)
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
	return p.test(ctx)
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
