package policy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

// maxProblems is more than anyone reads at a time.
const maxProblems = 50

// program is a compiled set of modules, before it is trusted to decide.
type program struct {
	parsed   map[string]*ast.Module // tests among them; a compiler works on copies
	compiler *ast.Compiler          // of all but the tests
	data     document
	rules    map[string]Rule
	ofBase   map[string]bool // codes that the base describes; nil where nothing is added to it
	reads    fields
	options  Options
}

// Validate reports everything that keeps m from being activated, short of running its tests and the checks. The tests are
// compiled as an activation does.
func Validate(m Modules, o Options) []Problem {
	_, problems := Inspect(m, o)
	return problems
}

// Inspect is Validate, and reports whether a module may read input.object.
func Inspect(m Modules, o Options) (readsObject bool, problems []Problem) {
	o, err := o.withDefaults()
	if err != nil {
		return false, []Problem{{Code: CodeInternal, Message: err.Error()}}
	}
	p, problems := compile(context.Background(), m, o)
	if p == nil || len(problems) > 0 {
		return false, problems
	}
	return p.reads.has(objectField), p.compileTests(m)
}

// compileTests reports what keeps the tests of m, of which p was compiled, from being run.
func (p *program) compileTests(m Modules) []Problem {
	if m.mayBeUntested() {
		return nil
	}
	w := p.options.work()
	ctx, cancel := within(context.Background(), p.options.TestTimeout, w.used)
	defer cancel()
	var err error
	w.run(func() { _, err = p.suite(ctx) })
	if err == nil {
		return nil
	}
	if refused, ok := errors.AsType[*ProblemsError](err); ok {
		return refused.Problems
	}
	return []Problem{{Code: CodeInternal, Message: err.Error()}}
}

func compile(ctx context.Context, m Modules, o Options) (p *program, problems []Problem) {
	defer func() {
		if v := recover(); v != nil { // a module that makes the compiler panic must not end the process
			p, problems = nil, []Problem{{Code: CodeInternal, Message: fmt.Sprintf("the compiler panicked: %v", v)}}
		}
	}()
	if problems := m.checkSize(o.Limits); len(problems) > 0 {
		return nil, problems
	}
	data, err := newDocument(m.Data, o.Limits.DataBytes)
	if err != nil {
		return nil, []Problem{{Code: CodeData, Message: err.Error()}}
	}
	all, problems := parse(ctx, m)
	if len(problems) == 0 {
		problems = m.tooComplex(all)
	}
	if len(problems) > 0 {
		return nil, sortProblems(problems)
	}
	deciding := maps.Clone(all)
	maps.DeleteFunc(deciding, func(name string, _ *ast.Module) bool { return isTestFile(name) })
	rules, files, problems := ruleTable(deciding, slices.DeleteFunc(m.inOrder(), isTestFile))
	entry, err := entrypointRef(o.Entrypoint)
	if err != nil {
		return nil, []Problem{{Code: CodeEntrypoint, Message: err.Error()}}
	}
	added := newAdditions(m, all, entry)
	problems = append(problems, added.checkSpelling()...)
	if m.Base != nil {
		problems = append(problems, added.checkDefinitions()...)
		problems = append(problems, added.guardCodes(files)...)
	}
	if m.Base != nil && len(problems) > 0 {
		return nil, sortProblems(problems)
	}

	compiler, err := compileModules(ctx, deciding, data)
	if err != nil {
		return nil, sortProblems(append(problems, added.blame(compiler, problemsOf("", err))...))
	}
	problems = append(problems, added.checkInput(compiler)...)
	problems = append(problems, added.checkPackages(compiler.Modules)...)
	problems = append(problems, m.misreads(compiler.Modules, data)...)
	if m.Base != nil {
		problems = append(problems, added.checkReads(compiler.Modules, data)...)
	}
	if len(compiler.GetRulesExact(entry)) == 0 {
		problems = append(problems, Problem{Code: CodeEntrypoint, Message: "no module defines " + o.Entrypoint})
	}
	if len(problems) > 0 {
		return nil, sortProblems(problems)
	}
	p = &program{parsed: all, compiler: compiler, data: data, rules: rules, reads: fieldsRead(compiler.Modules), options: o}
	if m.Base != nil {
		p.ofBase = map[string]bool{}
		for code, file := range files {
			p.ofBase[code] = added.isBase(file)
		}
	}
	return p, nil
}

// parse reads every module and looks for what can be found without the others, until ctx ends.
func parse(ctx context.Context, m Modules) (map[string]*ast.Module, []Problem) {
	options := ast.ParserOptions{Capabilities: capabilities(), ProcessAnnotation: true, RegoVersion: ast.RegoV1}
	out := make(map[string]*ast.Module, len(m.Files))
	var problems []Problem
	var all textCounts
	for _, name := range m.inOrder() {
		if len(problems) >= maxProblems {
			break
		}
		if ctx.Err() != nil {
			return out, append(problems, ended(ctx))
		}
		counts, problem := checkText(name, m.Files[name])
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		if all.add(counts); all.excess(maxTextFactor) != "" {
			return out, append(problems, Problem{File: name, Code: CodeLimit, Message: "all modules up to here: " + all.excess(maxTextFactor)})
		}
		module, err := ast.ParseModuleWithOpts(name, m.Files[name], options)
		if err != nil {
			problems = append(problems, problemsOf(name, err)...)
			continue
		}
		problems = append(problems, reservedDocuments(name, module)...)
		problems = append(problems, boundedCalls(module)...)
		problems = append(problems, chargeCalls(module)...)
		out[name] = module
	}
	return out, problems
}

// ended is the problem of modules whose caller has left.
func ended(ctx context.Context) Problem {
	return Problem{Code: CodeInternal, Message: context.Cause(ctx).Error()}
}

func stopped(ctx context.Context) *ast.Error {
	if ctx.Err() != nil {
		return ast.NewError(CodeInternal, nil, "%s", context.Cause(ctx))
	}
	return nil
}

// stages are those of the compiler after which it checks whether its caller still waits: all that take long.
var stages = []ast.StageID{
	ast.StageResolveRefs, ast.StageCheckUnusedImports, ast.StageCheckDuplicateImports, ast.StageSetRuleTree, ast.StageRewriteLocalVars,
	ast.StageRewriteExprTerms, ast.StageSetGraph, ast.StageRewriteComprehensionTerms, ast.StageCheckRuleConflicts, ast.StageCheckSafetyRuleHeads,
	ast.StageCheckSafetyRuleBodies, ast.StageRewriteDynamicTerms, ast.StageCheckRecursion, ast.StageCheckTypes, ast.StageBuildRuleIndices,
}

// newCompiler is the one place where a compiler is made. It ends with an error soon after ctx. Strict mode turns unused variables and imports, which are
// mostly misspellings, into errors; print statements are never enabled.
// Rules that lie where the data lies are refused: they would hide one or the other. Comprehensions have no index: OPA would build it before
// their variables have values, and the charges need those.
func newCompiler(ctx context.Context, c *ast.Capabilities, store storage.Store, txn storage.Transaction) *ast.Compiler {
	compiler := ast.NewCompiler().WithCapabilities(c).WithStrict(true).WithEnablePrintStatements(false).
		WithDefaultRegoVersion(ast.RegoV1).SetErrorLimit(maxProblems).
		WithSkipStages(ast.StageBuildComprehensionIndices).
		WithPathConflictsCheck(storage.NonEmpty(ctx, store, txn))
	stop := func(*ast.Compiler) *ast.Error { return stopped(ctx) }
	for _, id := range stages {
		compiler.WithStageAfterID(id, ast.CompilerStageDefinition{Name: "Stop", MetricName: "compile_stage_stop", Stage: stop})
	}
	bound := func(c *ast.Compiler) *ast.Error { return boundTypes(ctx, c) }
	return compiler.
		WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{Name: "BoundTypes", MetricName: "compile_stage_bound_types", Stage: bound}).
		WithStageAfterID(ast.StageCheckRecursion, ast.CompilerStageDefinition{Name: "Charge", MetricName: "compile_stage_charge", Stage: chargeCollections})
}

// compileModules returns the compiler also with an error of its own: how far it came says more of that.
func compileModules(ctx context.Context, modules map[string]*ast.Module, data document) (*ast.Compiler, error) {
	store := inmem.NewFromASTObject(data.object)
	txn, err := store.NewTransaction(ctx)
	if err != nil {
		return nil, fmt.Errorf("read data: %w", err)
	}
	defer store.Abort(ctx, txn)
	compiler := newCompiler(ctx, capabilities(compilerBuiltins...), store, txn)
	if compiler.Compile(modules); compiler.Failed() {
		return compiler, compiler.Errors
	}
	return compiler, nil
}

// prepare makes a query ready that can be evaluated any number of times, by many at once.
func (p *program) prepare(ctx context.Context, text string, data document) (query, error) {
	body, err := ast.ParseBody(text)
	if err != nil {
		return query{}, fmt.Errorf("prepare %s: %w", text, err)
	}
	return prepare(ctx, p.compiler, body, data)
}

func prepare(ctx context.Context, compiler *ast.Compiler, body ast.Body, data document) (query, error) {
	q, err := rego.New(
		rego.ParsedQuery(body),
		rego.Compiler(compiler),
		rego.Store(inmem.NewFromASTObject(data.object)),
		rego.StrictBuiltinErrors(true),
		// The result is decoded from OPA's own form: the way over maps costs more than the evaluation of a small policy.
		rego.GenerateJSON(func(t *ast.Term, _ *rego.EvalContext) (any, error) { return t, nil }),
	).PrepareForEval(ctx)
	if err != nil {
		return query{}, fmt.Errorf("prepare %s: %w", body, err)
	}
	return query{q, baseDocuments{data.object}}, nil
}
