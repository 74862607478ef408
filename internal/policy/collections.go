package policy

import (
	"errors"
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

var errCharge = errors.New("the charge of a value is not a number")

func init() {
	ast.RegisterBuiltin(charging)
	topdown.RegisterBuiltinFunc(chargeBuiltin, func(bctx topdown.BuiltinContext, operands []*ast.Term, iter func(*ast.Term) error) error {
		n, _ := operands[0].Value.(ast.Number)
		bytes, ok := n.Int()
		more, _ := operands[1].Value.(ast.Number)
		times, isTimes := more.Int()
		if !ok || !isTimes {
			return topdown.Halt{Err: fault(ReasonInternal, errCharge)}
		}
		b := budgetOf(bctx.Context)
		if err := b.take(int64(bytes)); err != nil {
			return halted(err)
		}
		for _, o := range operands[2:] {
			if err := b.holdTerm(o, int64(times)); err != nil {
				return halted(err)
			}
		}
		return iter(nil)
	})
}

// chargeCollections adds the calls that take the cost of what no function makes.
//
// An array, a set or an object that is written out with variables in it costs itself, and what the variables hold, unless that was
// paid for. OPA makes such values late, and then anew with everything in them, as often as they are used: a few rules of the
// form f(x) := [x, x] ask for more than any memory. The charge makes each at once, before another can hold it twice.
//
// What comprehensions and rules collect, and the results of functions, which OPA remembers, cost each time that a body is true.
func chargeCollections(c *ast.Compiler) *ast.Error {
	for _, m := range c.Modules {
		ast.WalkClosures(m, func(x any) bool {
			switch x := x.(type) {
			case *ast.ArrayComprehension:
				x.Body = charged(x.Body, memberBytes, x.Term)
			case *ast.SetComprehension:
				x.Body = charged(x.Body, memberBytes, x.Term)
			case *ast.ObjectComprehension:
				x.Body = charged(x.Body, memberBytes, x.Key, x.Value)
			case *ast.Every:
				x.Body = charged(x.Body, 0)
			}
			return false
		})
		ast.WalkRules(m, func(r *ast.Rule) bool {
			if r.Default {
				return false
			}
			kept := 0
			if h := r.Head; len(h.Args) > 0 || h.Key != nil || !h.Ref().IsGround() {
				kept = memberBytes * (1 + len(h.Args) + len(h.Ref()))
			}
			r.Body = charged(r.Body, kept, r.Head.Key, r.Head.Value)
			return false
		})
	}
	return nil
}

// charged is a body with charges for the values that are written out in it, each before the next is written out, and at the end for those
// in the head and so many bytes more.
func charged(body ast.Body, kept int, head ...*ast.Term) ast.Body {
	var out ast.Body
	add := func(e *ast.Expr) {
		e.Index = len(out)
		out = append(out, e)
	}
	var due written
	charge := func(next written) {
		if due.bytes > 0 && next.bytes > 0 {
			add(due.charge(out[len(out)-1].Location))
			due = written{}
		}
		due.bytes += next.bytes
		due.times, due.vars = max(due.times, next.times), append(due.vars, next.vars...)
	}
	for _, e := range body {
		var own written
		if !e.Negated { // what is negated binds nothing
			own.expression(e)
		}
		charge(own)
		add(e)
	}
	var last written
	for _, t := range head {
		if t != nil {
			ast.WalkTerms(t, last.term)
		}
	}
	charge(last)
	if due.bytes += kept; due.bytes > 0 && len(out) > 0 {
		add(due.charge(out[len(out)-1].Location))
	}
	return out
}

// written are the arrays, sets and objects with variables that are written out somewhere, but not those within closures, which are charged there.
type written struct {
	bytes int
	vars  []*ast.Term
	times int // how often one of these stands there, beyond the first
	seen  map[ast.Var]int
}

func (w *written) expression(e *ast.Expr) {
	switch terms := e.Terms.(type) {
	case *ast.Term:
		ast.WalkTerms(terms, w.term)
	case []*ast.Term:
		for _, t := range terms {
			ast.WalkTerms(t, w.term)
		}
	}
	for _, with := range e.With {
		ast.WalkTerms(with.Value, w.term)
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
	e := ast.NewExpr(append([]*ast.Term{ast.NewTerm(charging.Ref()), ast.IntNumberTerm(w.bytes), ast.IntNumberTerm(w.times)}, w.vars...))
	e.Location, e.Generated = at, true
	return e
}

// chargeCalls finds what names the function that only the compiler calls.
func chargeCalls(m *ast.Module) []Problem {
	var out []Problem
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if strings.Contains(functionName(t), "charge_memory") {
			out = append(out, at(t.Location, CodeBuiltin, "function "+chargeBuiltin+" is not available to policies"))
		}
		return false
	})
	return out
}
