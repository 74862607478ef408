package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
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

// suite is the modules of a program, compiled with their tests by OPA's own runner.
type suite struct {
	options  *Options
	compiler *ast.Compiler
	data     document
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
	defer store.Abort(context.WithoutCancel(ctx), txn)
	s = &suite{options: &p.options, data: p.data, compiler: newCompiler(ctx, capabilities(append([]string{testBuiltin}, compilerBuiltins...)...), store, txn)}
	// The runner compiles, with stages of its own: it gives tests of one name names of their own, and cases of a test theirs. It runs none.
	none, err := tester.NewRunner().SetCompiler(s.compiler).SetStore(store).CapturePrintOutput(false).SetModules(p.parsed).Filter("^$").RunTests(ctx, txn)
	if err != nil {
		return nil, &ProblemsError{sortProblems(problemsOf("", err))}
	}
	for range none { //nolint:revive // its goroutines wait for their reader
	}
	return s, nil
}

// testRule is a rule that is a test.
type testRule struct {
	*ast.Rule
	pkg  *ast.Package
	name ast.Ref // in the package
	skip bool
}

// ruleOf returns a rule as a test, and false if it is none: no part of its name begins with test_ or todo_test_.
func ruleOf(m *ast.Module, r *ast.Rule) (t testRule, ok bool) {
	ref := r.Head.Ref().GroundPrefix()
	for i, term := range ref {
		name := nameOf(term)
		isSkipped := strings.HasPrefix(name, tester.SkipTestPrefix)
		if isSkipped || strings.HasPrefix(name, tester.TestPrefix) {
			return testRule{r, m.Package, ref[:i+1], isSkipped}, true
		}
	}
	return testRule{}, false
}

// tests returns the tests in the order of file and line.
func (s *suite) tests() (out []testRule) {
	for _, m := range s.compiler.Modules {
		for _, r := range m.Rules {
			if t, ok := ruleOf(m, r); ok {
				out = append(out, t)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b testRule) int { return cmp.Or(a.Loc().Compare(b.Loc()), a.name.Compare(b.name)) })
	return out
}

// runAll runs one test after another, each with the memory of a decision and the time of some.
func (s *suite) runAll(ctx context.Context) ([]TestResult, error) {
	out := []TestResult{}
	for _, t := range s.tests() {
		w := s.options.work()
		bounded, release := withBudget(ctx, nil, w)
		var r TestResult
		w.run(func() { r = s.run(bounded, t, w) })
		release()
		if err := context.Cause(ctx); err != nil {
			return out, fmt.Errorf("run policy tests: stopped after %d, during %s.%s (%s:%d): %w", len(out), r.Package, r.Name, r.File, r.Line, err)
		}
		out = append(out, r)
	}
	return out, nil
}

// run runs one test, with the budget of ctx, as a decision is evaluated: so that nothing in it, a stack that has no end or a panic, ends the process.
func (s *suite) run(ctx context.Context, t testRule, w *work) TestResult {
	out := TestResult{Package: strings.TrimPrefix(t.pkg.Path.String(), "data."), Name: t.name.String(), Skipped: t.skip}
	if at := t.Loc(); at != nil {
		out.File, out.Line = at.File, at.Row
	}
	if t.skip {
		return out
	}
	atMost := testShare * s.options.Timeout
	cancel, stop := limit(ctx, atMost, w.used)
	defer stop()
	began := time.Now()
	out.Message = s.outcome(ctx, t, cancel)
	out.Duration = time.Since(began)
	if out.Message == "" {
		out.Passed = true
	} else if cancel.Cancelled() {
		out.Message = fmt.Sprintf("it takes longer than %v, which is %d times what a decision may take", atMost, testShare)
	}
	return out
}

// outcome is why a test does not pass.
func (s *suite) outcome(ctx context.Context, t testRule, cancel topdown.Cancel) string {
	q, err := prepare(ctx, s.compiler, ast.NewBody(ast.NewExpr(ast.NewTerm(t.pkg.Path.Extend(t.name)))), s.data)
	if err != nil {
		return err.Error()
	}
	var begun cases
	var options []rego.EvalOption
	hasCases := t.Head.DocKind() == ast.PartialObjectDoc
	if hasCases {
		options = append(options, rego.EvalQueryTracer(&begun))
	}
	value, err := evaluate(ctx, q, nil, cancel, options...)
	switch own, ok := errors.AsType[*Error](err); {
	case ok && own.Reason == ReasonUndefined:
		return notTrue
	case ok:
		return own.Err.Error()
	case err != nil:
		return err.Error()
	case hasCases:
		return begun.failed(value)
	case !ast.Boolean(true).Equal(value):
		return notTrue
	}
	return ""
}

const notTrue = "not true"

// Bounds of the cases of a test: a loop begins millions within its time.
const (
	maxCases    = 10_000
	maxCaseText = 1 << 20 // bytes of all names
	maxNamed    = 20      // that are told
)

// cases are those of one test that have begun, as OPA tells of them.
type cases struct {
	names  map[string]bool
	text   int
	isOver bool // there are more
}

// Enabled says that OPA is to tell.
func (*cases) Enabled() bool { return true }

// Config says that OPA is not to look up the values of variables.
func (*cases) Config() topdown.TraceConfig { return topdown.TraceConfig{} }

// TraceEvent notes the case of an event, if it is of one.
func (c *cases) TraceEvent(e topdown.Event) {
	if e.Op != topdown.TestCaseOp || c.isOver {
		return
	}
	expr, ok := e.Node.(*ast.Expr)
	if !ok {
		return
	}
	name := ""
	if path, ok := expr.Operand(0).Value.(*ast.Array); ok {
		path.Foreach(func(k *ast.Term) { name += "/" + caseName(k) })
	}
	if c.names[name] {
		return
	}
	if c.text += len(name); len(c.names) == maxCases || c.text > maxCaseText {
		c.isOver = true
		return
	}
	if c.names == nil {
		c.names = map[string]bool{}
	}
	c.names[name] = true
}

// failed is why a test with cases does not pass: cases that are not true, cases that began and are not in its value, or none at all.
func (c *cases) failed(value ast.Value) string {
	if c.isOver {
		return fmt.Sprintf("it has more than %d cases, or names of more than %d bytes together", maxCases, maxCaseText)
	}
	failed := map[string]bool{}
	maps.Copy(failed, c.names)
	var look func(name string, v ast.Value)
	look = func(name string, v ast.Value) {
		if o, ok := v.(ast.Object); ok && (name == "" || o.Len() > 0) {
			o.Foreach(func(k, v *ast.Term) { look(name+"/"+caseName(k), v.Value) })
			return
		}
		if ast.Boolean(true).Equal(v) {
			delete(failed, name)
		} else {
			failed[name] = true
		}
	}
	if look("", value); len(c.names) == 0 {
		return notTrue + " for any case: there is none"
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		names = append(names, fmt.Sprintf("%.200s", strings.TrimPrefix(name, "/")))
	}
	switch more := len(names) - maxNamed; {
	case len(names) == 0:
		return ""
	case more > 0:
		return fmt.Sprintf("%s for %s and %d more", notTrue, strings.Join(names[:maxNamed], ", "), more)
	}
	return notTrue + " for " + strings.Join(names, ", ")
}

func caseName(k *ast.Term) string {
	if s, ok := k.Value.(ast.String); ok {
		return string(s)
	}
	return k.String()
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
	w := o.work()
	ctx, cancel := within(ctx, o.TestTimeout, w.used)
	defer cancel()
	w.run(func() {
		if results, err = p.ownTests(ctx, m); err == nil {
			_, refusal = p.accept(ctx, m, results)
		}
	})
	if err != nil {
		return nil, nil, err
	}
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

// ownTests compiles the modules with their tests, and runs those of m. Only modules that add to a base may do without.
func (p *program) ownTests(ctx context.Context, m Modules) ([]TestResult, error) {
	if m.mayBeUntested() {
		return nil, nil
	}
	s, err := p.suite(ctx)
	if err != nil {
		return nil, err
	}
	return s.runAll(ctx)
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
