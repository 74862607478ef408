package policy

import (
	"fmt"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// For an expression under "with input.a as x", OPA copies the whole input that holds there, as a tree, and x with it if another part of x is
// replaced; and the same of what stands in for data. Each copy is larger than the one before, and all of them are kept. So each such expression takes
// the cost of its copies from the budget. How much stands in for input and data is known only during evaluation, so the total is
// handed down as one more document under "with", at a path that modules may not name.

// standIn is that document, below data.system, where no module lies.
var standIn = ast.MustParseRef("data.system.pipeguard_weight")

// withBuiltin takes what stands in already (a list of the one number, or none), whether the input is copied, the values that stand in newly, and
// those of them that are copied. Its result is what stands in then, in steps. No module may name it: the compiler adds the calls.
const withBuiltin = "internal.charge_with"

var substituting = &ast.Builtin{
	Name: withBuiltin,
	Decl: types.NewFunction(types.Args(types.A, types.B, types.A, types.A), types.N),
}

func init() {
	register(substituting, func(bctx topdown.BuiltinContext, operands []*ast.Term) (*ast.Term, error) {
		n, err := chargeWith(bctx, operands)
		return ast.IntNumberTerm(int(n)), err
	})
}

func chargeWith(bctx topdown.BuiltinContext, operands []*ast.Term) (int64, error) {
	before, isList := operands[0].Value.(*ast.Array)
	isCopied, isMarked := operands[1].Value.(ast.Boolean)
	if !isList || !isMarked {
		return 0, errCharge
	}
	b, e := budgetOf(bctx.Context), evaluationOf(bctx)
	if b == nil {
		return 0, errUnbounded
	}
	stands := int64(0)
	for i := range before.Len() {
		n, ok := before.Elem(i).Value.(ast.Number)
		steps, isWhole := n.Int64()
		if !ok || !isWhole {
			return 0, errCharge
		}
		stands += steps
	}
	copied := stands
	if isCopied && b.input != nil {
		copied += e.weigh(ast.NewTerm(b.input)).steps
	}
	sum := weight{steps: stands}.plus(e.weigh(operands[2]), 1)
	if err := b.bear(e, sum); err != nil {
		return 0, err
	}
	return sum.steps, b.take((copied + e.weigh(operands[3]).steps) * memberBytes)
}

// substitutions adds the charge of what stands in for input and data under an expression. It comes before the expression.
func (r *charger) substitutions(e *ast.Expr) (out []*ast.Expr) {
	isInputCopied := false
	var values, copied []*ast.Term
	for i, w := range e.With {
		target, ok := w.Target.Value.(ast.Ref)
		if !ok {
			continue
		}
		if f, ok := w.Value.Value.(ast.Ref); ok { // a function in the place of another; OPA's compiler has given other values names
			if r.arity(f) < 1 {
				r.refuse(e.Location, fmt.Sprintf("%s under \"with\"", f))
			}
			continue
		}
		isInput := target.HasPrefix(ast.InputRootRef)
		if !isInput && !target.HasPrefix(ast.DefaultRootRef) { // a function
			continue
		}
		if standIn.HasPrefix(target) || target.HasPrefix(standIn) {
			r.refuse(e.Location, fmt.Sprintf("\"with %s\"", target))
			return nil
		}
		isInputCopied = isInputCopied || isInput && len(target) > 1
		values = append(values, w.Value)
		for _, other := range e.With[i+1:] {
			if t, ok := other.Target.Value.(ast.Ref); ok && len(t) > len(target) && t.HasPrefix(target) {
				copied = append(copied, w.Value)
				break
			}
		}
	}
	if len(values) == 0 {
		return nil
	}
	term := func(v ast.Value) *ast.Term { return ast.NewTerm(v).SetLocation(e.Location) }
	name := func() *ast.Term {
		r.names++
		return term(ast.Var(fmt.Sprintf("__local_made%d__", r.names)))
	}
	add := func(e *ast.Expr) {
		e.Generated = true
		out = append(out, e)
	}
	found, before, stands := name(), name(), name()
	add(ast.Equality.Expr(before, term(&ast.ArrayComprehension{Term: found, Body: ast.NewBody(ast.Equality.Expr(found, term(standIn.Copy())))})))
	add(substituting.Expr(before, ast.BooleanTerm(isInputCopied), ast.ArrayTerm(values...), ast.ArrayTerm(copied...), stands))
	for _, x := range out {
		x.Location = e.Location
	}
	e.With = append(append([]*ast.With{}, e.With...), &ast.With{Target: term(standIn.Copy()), Value: stands, Location: e.Location})
	return out
}
