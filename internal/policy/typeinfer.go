package policy

import (
	"context"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"
)

// boundTypes is a stage of the compiler, after the check for recursion, without which rules cannot be sorted.
// What was not bounded is not compared.
func boundTypes(ctx context.Context, c *ast.Compiler) *ast.Error {
	if fault := infer(ctx, c).fault; fault != nil {
		return fault
	}
	return stopped(ctx)
}

func infer(ctx context.Context, c *ast.Compiler) *inference {
	in := &inference{documents: &typeTree{}, weights: map[types.Type]int{}, closures: map[ast.Value]types.Type{}}
	sorted, _ := c.Graph.Sort()
	for _, node := range sorted {
		if in.fault != nil || ctx.Err() != nil {
			break
		}
		if r, ok := node.(*ast.Rule); ok {
			in.rule(r)
		}
	}
	return in
}

// inference follows OPA's type checker (v1/ast/check.go and env.go) without its faults, which the checker itself reports afterwards.
type inference struct {
	documents *typeTree
	weights   map[types.Type]int       // of types that are pointers
	closures  map[ast.Value]types.Type // of comprehensions, which are pointers, too
	at        *ast.Location
	depth     int // of closures
	work      int
	fault     *ast.Error // the first; types are any from then on
}

// scope holds the types of variables, and of documents that a with modifier replaces.
type scope struct {
	vars     map[ast.Var]types.Type
	replaced *typeTree
	next     *scope
}

func (s *scope) inner() *scope { return &scope{vars: map[ast.Var]types.Type{}, next: s} }

func (s *scope) get(v ast.Var) types.Type {
	for ; s != nil; s = s.next {
		if t := s.vars[v]; t != nil {
			return t
		}
	}
	return nil
}

func (in *inference) rule(r *ast.Rule) {
	in.at = r.Location
	s := in.body((*scope)(nil).inner(), r.Body)
	in.at = r.Location
	path, value := r.Ref(), r.Head.Value
	var t types.Type
	switch {
	case len(r.Head.Args) > 0:
		args := make([]types.Type, len(r.Head.Args))
		for i, arg := range r.Head.Args {
			ast.WalkTerms(arg, func(term *ast.Term) bool {
				if v, ok := term.Value.(ast.Var); ok && s.get(v) == nil {
					s.vars[v] = types.A
				}
				return false
			})
			args[i] = in.of(s, arg.Value)
		}
		t = types.NewFunction(args, in.of(s, value.Value))
	case r.Head.RuleKind() == ast.MultiValue:
		t = types.NewSet(in.of(s, r.Head.Key.Value))
	case value != nil:
		t = in.of(s, value.Value)
	}
	if !path.IsGround() {
		suffix := path.DynamicSuffix()
		for i := len(suffix) - 1; i >= 0; i-- {
			t = types.NewObject(nil, types.NewDynamicProperty(in.of(s, suffix[i].Value), in.bounded(t)))
		}
		path = path.GroundPrefix()
	}
	node := in.documents.at(path)
	node.value = in.or(node.value, in.bounded(t))
}

// body infers the types of the variables of a body, in its order.
func (in *inference) body(outer *scope, body ast.Body) *scope {
	s := outer.inner()
	for _, e := range body {
		in.at = e.Location
		in.expr(in.with(s, e), e)
	}
	return s
}

// with is the scope of an expression: that of its body, in which a replaced document may also have the type of its replacement.
func (in *inference) with(s *scope, e *ast.Expr) *scope {
	if len(e.With) == 0 {
		return s
	}
	replaced := &typeTree{}
	for _, w := range e.With {
		if target, ok := w.Target.Value.(ast.Ref); ok {
			replaced.at(target.GroundPrefix()).value = in.or(in.ref(s, target), in.of(s, w.Value.Value))
		}
	}
	return &scope{vars: s.vars, replaced: replaced, next: s}
}

func (in *inference) expr(s *scope, e *ast.Expr) {
	in.closuresAndRefs(s, e)
	if !e.IsCall() {
		return
	}
	args := e.Operands()
	switch name := e.Operator().String(); {
	case name == ast.Equality.Name && len(args) == ast.Equality.Decl.Arity():
		in.unify(s, args[0], args[1])
		return
	case name == ast.Member.Name && len(args) >= ast.Member.Decl.Arity():
		in.bind(s, args[0], in.bounded(types.Values(in.of(s, args[1].Value))), false)
	case name == ast.MemberWithKey.Name && len(args) >= ast.MemberWithKey.Decl.Arity():
		collection := in.of(s, args[2].Value)
		in.bind(s, args[0], in.bounded(types.Keys(collection)), false)
		in.bind(s, args[1], in.bounded(types.Values(collection)), false)
	}
	f, ok := in.ref(s, e.Operator()).(*types.Function)
	if b := ast.BuiltinMap[e.Operator().String()]; b != nil {
		f, ok = b.Decl, true
	}
	if !ok {
		return
	}
	declared := f.FuncArgs()
	if f.Result() != nil {
		declared.Args = append(declared.Args, f.Result())
	}
	for i, arg := range args {
		in.spend(in.of(s, arg.Value), declared.Arg(i))
		in.bind(s, arg, declared.Arg(i), false)
	}
}

// closuresAndRefs visits what an expression holds: comprehensions have bodies of their own, references give their variables types.
func (in *inference) closuresAndRefs(s *scope, e *ast.Expr) {
	visit := ast.NewGenericVisitor(func(x any) bool {
		if v, ok := x.(ast.Value); ok && ast.IsComprehension(v) {
			in.of(s, v)
			return true
		}
		if ref, ok := x.(ast.Ref); ok {
			in.spend(in.ref(s, ref), nil)
		}
		return false
	})
	visit.Walk(e)
	in.at = e.Location
}
