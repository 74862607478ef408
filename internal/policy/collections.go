package policy

import (
	"errors"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// chargeBuiltin takes the cost of values that an expression, a comprehension or a rule makes: a number of bytes, how often
// one of the values that they hold stands there beyond the first time, and these values. No module may name it: the compiler adds the calls.
const chargeBuiltin = "internal.charge_memory"

var charging = &ast.Builtin{
	Name: chargeBuiltin,
	Decl: types.NewVariadicFunction(types.Args(types.N, types.N), types.A, nil),
}

var errCharge = errors.New("the compiler has added a charge that is none")

func init() {
	register(charging, func(bctx topdown.BuiltinContext, operands []*ast.Term) (*ast.Term, error) {
		n, _ := operands[0].Value.(ast.Number)
		bytes, ok := n.Int()
		more, _ := operands[1].Value.(ast.Number)
		times, isTimes := more.Int()
		if !ok || !isTimes {
			return nil, errCharge
		}
		return nil, chargeWritten(bctx, int64(bytes), int64(times), operands[2:])
	})
}

// register makes a function that only the compiler may name, see chargeCalls. An error of it ends the evaluation.
func register(f *ast.Builtin, run func(bctx topdown.BuiltinContext, operands []*ast.Term) (*ast.Term, error)) {
	ast.RegisterBuiltin(f)
	topdown.RegisterBuiltinFunc(f.Name, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		result, err := run(bctx, operands)
		if err != nil {
			return halted(err)
		}
		return iter(result)
	})
}

// chargeWritten takes the cost of values that are written out with these values in them, and refuses those that are too heavy together.
func chargeWritten(bctx topdown.BuiltinContext, bytes, times int64, values []*ast.Term) error {
	b := budgetOf(bctx.Context)
	if err := b.take(bytes); err != nil || len(values) == 0 {
		return err
	}
	e := evaluationOf(bctx)
	sum := weight{steps: bytes / termBytes, levels: bytes / termBytes}
	for _, o := range values {
		w, err := e.pay(b, o)
		if err != nil {
			return err
		}
		sum = sum.plus(w, 1+times)
		if err := b.bear(e, sum); err != nil {
			return err
		}
		if w.levels > 0 { // a copy of each mention, but of texts and numbers
			if err := b.take(times * w.steps * memberBytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// written are the arrays, sets and objects with variables that are written out somewhere, but not those within closures, which are charged there.
type written struct {
	bound ast.VarSet // those that have a value; others get one that stands elsewhere
	bytes int
	vars  []*ast.Term
	times int // how often one of these stands there, beyond the first
	seen  map[ast.Var]int
}

// walkOperands visits the terms of an expression, and the values that its with modifiers put in place of others, until visit says to skip what is in one.
func walkOperands(e *ast.Expr, visit func(*ast.Term) (skip bool)) {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		ast.WalkTerms(terms, visit)
	case []*ast.Term:
		for _, t := range terms {
			ast.WalkTerms(t, visit)
		}
	}
	for _, with := range e.With {
		ast.WalkTerms(with.Value, visit)
	}
}

// term looks for the outermost of them.
func (w *written) term(t *ast.Term) (skip bool) {
	switch t.Value.(type) {
	case *ast.Array, ast.Set, ast.Object:
		if !t.IsGround() {
			ast.WalkTerms(t, w.part)
		}
		return true
	}
	return ast.IsComprehension(t.Value)
}

// part adds up one of them.
func (w *written) part(t *ast.Term) (skip bool) {
	switch v := t.Value.(type) {
	case *ast.Array:
		w.bytes += termBytes * (v.Len() + 1)
	case ast.Set:
		w.bytes += memberBytes * (v.Len() + 1)
	case ast.Object:
		w.bytes += memberBytes * (v.Len() + 1)
	case ast.Var:
		if !w.bound.Contains(v) {
			return false
		}
		if w.seen == nil {
			w.seen = map[ast.Var]int{}
		}
		if w.seen[v]++; w.seen[v] == 1 {
			w.vars = append(w.vars, t)
		}
		w.times = max(w.times, w.seen[v]-1)
	case ast.Ref:
		return true
	}
	return ast.IsComprehension(t.Value)
}

func (w *written) charge(at *ast.Location) *ast.Expr {
	return call(at, charging, append([]*ast.Term{ast.IntNumberTerm(w.bytes), ast.IntNumberTerm(w.times)}, w.vars...)...)
}

// chargeCalls finds what names the functions that only the compiler calls.
func chargeCalls(m *ast.Module) []Problem {
	var out []Problem
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if name := functionName(t); slices.ContainsFunc(compilerBuiltins, func(own string) bool { return strings.Contains(name, strings.TrimPrefix(own, "internal.")) }) {
			out = append(out, at(t.Location, CodeBuiltin, "function "+name+" is not available to policies"))
		}
		return false
	})
	return out
}
