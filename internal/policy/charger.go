package policy

import (
	"fmt"
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// chargeCollections adds the calls that take the cost of what no function makes, and weigh it.
//
// An array, a set or an object that is written out with variables in it costs itself, and what the variables hold, unless that was
// paid for. OPA makes such values late, and then anew with everything in them, as often as they are used: a few rules of the
// form f(x) := [x, x] ask for more than any memory. The charge comes before the expression that they stand in, which may compare them.
//
// What comprehensions and rules collect, and the results of functions, which OPA remembers, cost each time that a body is true. A comprehension
// gets a name of its own, under which it is weighed before anything else sees it.
func chargeCollections(c *ast.Compiler) *ast.Error {
	r := charger{arity: c.GetArity}
	for _, m := range c.Modules {
		r.packages = append(r.packages, m.Package.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Modules)) {
		ast.WalkRules(c.Modules[name], func(rule *ast.Rule) bool {
			r.packagesIn(rule)
			if !rule.Default {
				r.rule(rule)
			}
			return false
		})
	}
	return r.err
}

// charger rewrites the bodies of all modules.
type charger struct {
	packages []ast.Ref
	arity    func(ast.Ref) int // of a function; less than 1 for what is none
	names    int               // that it has made
	asked    ast.VarSet        // variables of the head of a rule
	err      *ast.Error
}

// packagesIn refuses what takes a whole package for a value, which nothing else makes and so nothing weighs.
func (r *charger) packagesIn(rule *ast.Rule) {
	look := func(t *ast.Term) {
		ref, ok := t.Value.(ast.Ref)
		if ok && slices.ContainsFunc(r.packages, func(path ast.Ref) bool { return covers(ref, path) }) {
			r.refuse(t.Location, fmt.Sprintf("%s, which is a whole package and no rule of one,", ref))
		}
	}
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.With: // what it stands in for is not read
			ast.WalkTerms(x.Value, func(t *ast.Term) bool {
				look(t)
				return false
			})
			return true
		case *ast.Term:
			look(x)
		}
		return false
	}).Walk(rule.Body)
}

func (r *charger) rule(rule *ast.Rule) {
	h, bound, kept := rule.Head, ast.VarSet{}, 0
	for _, a := range h.Args {
		ast.WalkVars(a, func(v ast.Var) bool {
			bound.Add(v)
			return false
		})
	}
	path, own := rule.Ref(), h.Ref()
	r.asked = ast.VarSet{}
	for _, t := range append(slices.Clone(own), h.Key) {
		if t != nil {
			ast.WalkVars(t, func(v ast.Var) bool {
				r.asked.Add(v)
				return false
			})
		}
	}
	if len(h.Args) > 0 || h.Key != nil || !path.IsGround() {
		kept = memberBytes * (1 + len(h.Args) + len(own))
	}
	rule.Body = r.body(rule.Body, bound, kept, h.Key, h.Value)
	isWhole := len(own) == 1 && h.Key == nil // the value of a rule, or a result of a function; others are members of a collection that only OPA sees
	if len(h.Args) > 0 || isWhole {
		return
	}
	name, isSet := path[:len(path)-len(own)+1].String(), h.Key != nil && h.Value == nil
	members := append([]*ast.Term{ast.StringTerm(name), ast.BooleanTerm(isSet)}, own[1:]...)
	if h.Key != nil && !h.Key.Equal(own[len(own)-1]) { // OPA has the last key of an object in both
		members = append(members, h.Key)
	}
	if h.Value != nil {
		members = append(members, h.Value)
	}
	rule.Body = appended(rule.Body, call(rule.Body[len(rule.Body)-1].Location, weighing, members...))
}

// covers reports whether the value of a reference may be a whole package, or more than one.
func covers(ref, path ast.Ref) bool {
	if len(ref) > len(path) {
		return false
	}
	for i, t := range ref {
		if i > 0 && !t.IsGround() {
			continue
		}
		if !t.Equal(path[i]) {
			return false
		}
	}
	return true
}

// call is a call of a function that only the compiler may name.
func call(at *ast.Location, f *ast.Builtin, operands ...*ast.Term) *ast.Expr {
	e := ast.NewExpr(append([]*ast.Term{ast.NewTerm(f.Ref())}, operands...))
	e.Location, e.Generated = at, true
	return e
}

func appended(body ast.Body, e *ast.Expr) ast.Body {
	e.Index = len(body)
	return append(body, e)
}

// body is a body with charges for the values that are written out in it, each before its expression, and at the end for those in the head and so many
// bytes more. The variables in bound have values before it.
func (r *charger) body(body ast.Body, bound ast.VarSet, kept int, head ...*ast.Term) ast.Body {
	var out ast.Body
	bound = bound.Copy()
	for _, e := range body {
		r.closures(e, bound)
		fresh := r.fresh(e, bound)
		for _, made := range r.named(e, fresh) {
			for _, x := range r.substitutions(made) {
				out = appended(out, x)
			}
			out = appended(appended(out, made), call(e.Location, weighing, ast.StringTerm(""), ast.BooleanTerm(false), made.Operand(0)))
			if v, ok := made.Operand(0).Value.(ast.Var); ok {
				bound.Add(v)
			}
		}
		r.knots(e, bound)
		own := written{bound: bound}
		walkOperands(e, own.term)
		if own.bytes > 0 {
			out = appended(out, own.charge(e.Location))
		}
		for _, x := range r.substitutions(e) {
			out = appended(out, x)
		}
		out = appended(out, e)
		if fresh != nil {
			out = appended(out, call(e.Location, weighing, ast.StringTerm(""), ast.BooleanTerm(false), fresh))
		}
		if !e.Negated { // what is negated binds nothing
			bound.Update(e.Vars(ast.VarVisitorParams{SkipClosures: true}))
		}
	}
	last := written{bound: bound, bytes: 0}
	for _, t := range head {
		if t != nil {
			ast.WalkTerms(t, last.term)
		}
	}
	if last.bytes += kept; last.bytes > 0 && len(out) > 0 {
		out = appended(out, last.charge(out[len(out)-1].Location))
	}
	return out
}

// knots refuses an equation of two values that are written out, in which a variable gets its value and stands elsewhere too: in
// [x, y] = [[y, y], z], x is made of what y is found to be, and so on, and nothing could weigh that before.
func (r *charger) knots(e *ast.Expr, bound ast.VarSet) {
	isWritten := func(t *ast.Term) bool {
		switch t.Value.(type) {
		case *ast.Array, ast.Object:
			return true
		}
		return false
	}
	if !e.IsEquality() || !isWritten(e.Operand(0)) || !isWritten(e.Operand(1)) {
		return
	}
	times := map[ast.Var]int{}
	ast.WalkVars(e, func(v ast.Var) bool {
		if times[v]++; times[v] > 1 && !bound.Contains(v) {
			r.refuse(e.Location, "an equation in which a variable gets its value and stands a second time")
		}
		return false
	})
}

// closures rewrites the bodies within an expression.
func (r *charger) closures(e *ast.Expr, bound ast.VarSet) {
	switch terms := e.Terms.(type) {
	case *ast.Every:
		own := bound.Copy()
		for _, t := range []*ast.Term{terms.Key, terms.Value} {
			if t == nil {
				continue
			}
			if v, ok := t.Value.(ast.Var); ok {
				own.Add(v)
			}
		}
		terms.Body = r.body(terms.Body, own, 0)
	case *ast.Term, []*ast.Term:
		for _, t := range comprehensions(e) {
			switch v := t.Value.(type) {
			case *ast.ArrayComprehension:
				v.Body = r.body(v.Body, bound, memberBytes, v.Term)
			case *ast.SetComprehension:
				v.Body = r.body(v.Body, bound, memberBytes, v.Term)
			case *ast.ObjectComprehension:
				v.Body = r.body(v.Body, bound, memberBytes, v.Key, v.Value)
			}
		}
	default:
		r.refuse(e.Location, fmt.Sprintf("a %T as an expression", terms))
	}
}

func (r *charger) refuse(at *ast.Location, what string) {
	if r.err == nil {
		r.err = ast.NewError(ast.CompileErr, at, "%s cannot be bounded", what)
	}
}

// comprehensions are the outermost ones in an expression.
func comprehensions(e *ast.Expr) (out []*ast.Term) {
	walkOperands(e, func(t *ast.Term) (skip bool) {
		if skip = ast.IsComprehension(t.Value); skip {
			out = append(out, t)
		}
		return skip
	})
	return out
}

// fresh is the variable that stands for nothing but the comprehension on the other side of an equation, so that it needs no other name: nil if there is
// none. A variable of a head may have a value that the rule was asked for.
func (r *charger) fresh(e *ast.Expr, bound ast.VarSet) *ast.Term {
	if !e.IsEquality() || e.Negated {
		return nil
	}
	for i := range 2 {
		t := e.Operand(i)
		if v, ok := t.Value.(ast.Var); ok && ast.IsComprehension(e.Operand(1-i).Value) && !bound.Contains(v) && !r.asked.Contains(v) {
			return t
		}
	}
	return nil
}

// named gives each comprehension in an expression a name, and returns the expressions that say so. OPA's compiler has made sure that it stands
// by itself or on one side of a unification.
func (r *charger) named(e *ast.Expr, fresh *ast.Term) (out []*ast.Expr) {
	n := len(comprehensions(e))
	if fresh != nil {
		n--
	}
	if t, ok := e.Terms.(*ast.Term); n == 0 || ok && ast.IsComprehension(t.Value) { // which nothing sees
		return nil
	}
	if !e.IsEquality() {
		r.refuse(e.Location, "a comprehension in this place")
		return nil
	}
	terms, _ := e.Terms.([]*ast.Term) // of a function and two operands
	for i := 1; i <= 2; i++ {
		if !ast.IsComprehension(terms[i].Value) || fresh != nil {
			continue
		}
		r.names++
		name := ast.VarTerm(fmt.Sprintf("__local_made%d__", r.names))
		name.Location = terms[i].Location
		made := ast.Equality.Expr(name, terms[i])
		made.Location, made.With, made.Generated = e.Location, e.With, true
		out, terms[i] = append(out, made), name
		n--
	}
	if n > 0 {
		r.refuse(e.Location, "a comprehension in this place")
	}
	return out
}
