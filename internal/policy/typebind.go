package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// unify gives the variables of a the types of b, and the other way round, where they have none yet.
func (in *inference) unify(s *scope, a, b *ast.Term) {
	left, right := in.of(s, a.Value), in.of(s, b.Value)
	in.spend(left, right)
	leftOpen, rightOpen := types.Nil(left), types.Nil(right)
	switch {
	case leftOpen && !rightOpen:
		in.bind(s, a, right, false)
	case rightOpen && !leftOpen:
		in.bind(s, b, left, false)
	case leftOpen && rightOpen:
		in.unifyOpen(s, a, b)
	}
}

func (in *inference) unifyOpen(s *scope, a, b *ast.Term) {
	switch x := a.Value.(type) {
	case *ast.Array:
		if y, ok := b.Value.(*ast.Array); ok && x.Len() == y.Len() {
			for i := range x.Len() {
				in.unify(s, x.Elem(i), y.Elem(i))
			}
			return
		}
	case ast.Object:
		if y, ok := b.Value.(ast.Object); ok {
			for _, both := range x.Intersect(y) {
				in.unify(s, both[1], both[2])
			}
			return
		}
	case ast.Var:
		if _, ok := b.Value.(ast.Var); !ok {
			a, b = b, a // the variable last: it gets the type of the other
		}
	}
	in.bind(s, a, types.A, false)
	in.bind(s, b, in.of(s, a.Value), false)
}

// bind gives the variables of a term the types that those parts of t have. A variable keeps its first type, except within
// a union, in which it may have any of several.
func (in *inference) bind(s *scope, term *ast.Term, t types.Type, union bool) {
	if v, ok := term.Value.(ast.Var); ok {
		switch {
		case union:
			s.vars[v] = in.or(s.get(v), t)
		case s.get(v) == nil:
			s.vars[v] = t
		}
		return
	}
	if several, ok := t.(types.Any); ok && len(several) > 0 {
		for _, one := range several {
			in.bind(s, term, one, true)
		}
		return
	}
	whatever := types.Compare(t, types.A) == 0
	part := func(e *ast.Term, of types.Type) {
		if whatever {
			of = types.A
		}
		in.bind(s, e, of, union || whatever)
	}
	switch x := term.Value.(type) {
	case *ast.Array:
		if of, ok := t.(*types.Array); ok || whatever {
			for i := range x.Len() {
				part(x.Elem(i), item(of, i))
			}
		}
	case ast.Set:
		if _, ok := t.(*types.Set); ok || whatever {
			x.Foreach(func(e *ast.Term) { part(e, types.Values(t)) })
		}
	case ast.Object:
		if _, ok := t.(*types.Object); ok || whatever {
			x.Foreach(func(k, v *ast.Term) { in.bindProperty(s, k, v, t, union || whatever) })
		}
	}
}

func item(of *types.Array, i int) types.Type {
	if of == nil {
		return nil
	}
	return of.Select(i)
}

func (in *inference) bindProperty(s *scope, k, v *ast.Term, t types.Type, union bool) {
	key, err := ast.JSON(k.Value)
	if err != nil || !ast.IsConstant(k.Value) {
		in.bind(s, k, types.A, union)
		in.bind(s, v, types.A, union)
		return
	}
	in.bind(s, v, types.Select(t, key), union)
}
