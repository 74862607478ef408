package policy

import (
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A decision follows from the selection of an input if every rule that it rests on, directly or by way of others, for this selection
//
//   - says nothing, since its body begins with comparisons of texts of the selector with constants, and one of them does not hold; or
//   - reads no more of the input than those texts, and the types of the selector's other fields: by type_name, is_object and their like, and by nothing else.
//
// What else a rule can read is the same for every input: data, and other rules, which are looked at in the same way. No builtin that policies may call has another source (see
// allowedBuiltins). A rule with "with" is taken to read everything.

// reading is what one compiled rule takes from the input.
type reading struct {
	guards []guard
	isOpen bool // it reads more than the selector's fields tell
	rests  []*ast.Rule
}

// guard is a comparison that a body begins with: the text is one of the constants, or the rule says nothing.
type guard struct {
	text      int // of Selector.Texts
	constants []string
}

// readings are those of the rules that some queries rest on.
type readings struct {
	of      map[*ast.Rule]*reading
	entries []*ast.Rule
}

// readings looks at every rule that the documents rest on.
func (p *program) readings(documents ...ast.Ref) *readings {
	out := &readings{of: map[*ast.Rule]*reading{}}
	for _, ref := range documents {
		for _, r := range p.compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true}) {
			for ; r != nil; r = r.Else {
				out.entries = append(out.entries, r)
			}
		}
	}
	todo := slices.Clone(out.entries)
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if out.of[r] != nil {
			continue
		}
		found := p.options.Selector.read(r)
		for next := range p.compiler.Graph.Dependencies(r) {
			rule, isRule := next.(*ast.Rule) // each "else" by itself
			if found.isOpen = found.isOpen || !isRule; isRule {
				found.rests = append(found.rests, rule)
			}
		}
		out.of[r] = found
		todo = append(todo, found.rests...)
	}
	return out
}

// follow reports whether what the documents say follows from a selection alone.
func (r *readings) follow(chosen selection) bool {
	seen, todo := map[*ast.Rule]bool{}, slices.Clone(r.entries)
	for len(todo) > 0 {
		rule := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[rule] {
			continue
		}
		seen[rule] = true
		found := r.of[rule]
		if found.isSilent(chosen) {
			continue
		}
		if found.isOpen {
			return false
		}
		todo = append(todo, found.rests...)
	}
	return true
}

func (r *reading) isSilent(chosen selection) bool {
	return slices.ContainsFunc(r.guards, func(g guard) bool { return !slices.Contains(g.constants, chosen[g.text]) })
}

// read looks at one rule.
func (s *Selector) read(r *ast.Rule) *reading {
	return &reading{guards: s.guards(r.Body), isOpen: s.isOpen(r)}
}

// guards are the comparisons that a body begins with. They stand before everything else that is evaluated, so that where one does not hold nothing else of the body can fail or cost.
func (s *Selector) guards(body ast.Body) (out []guard) {
	names := map[ast.Var]int{} // variables that stand for texts
	for _, e := range body {
		if e.Negated || len(e.With) > 0 || !e.IsCall() {
			return out
		}
		switch operands := e.Operands(); {
		case e.IsEquality() && len(operands) == 2:
			if v, text, ok := s.names(operands); ok {
				names[v] = text
				continue
			}
			g, ok := s.equality(operands, names)
			if !ok {
				return out
			}
			out = append(out, g)
		case isMember(e) && len(operands) == 2:
			text, ok := s.textOf(operands[0], names)
			constants, isConstant := stringsOf(operands[1])
			if !ok || !isConstant {
				return out
			}
			out = append(out, guard{text, constants})
		default:
			return out
		}
	}
	return out
}

// names recognizes an equation that gives a text a name, as the compiler does where an operand of a call is a reference.
func (s *Selector) names(operands []*ast.Term) (v ast.Var, text int, ok bool) {
	v, isVar := operands[0].Value.(ast.Var)
	text, isText := s.textOf(operands[1], nil)
	return v, text, isVar && isText
}

func (s *Selector) equality(operands []*ast.Term, names map[ast.Var]int) (g guard, ok bool) {
	for i, operand := range operands {
		text, isText := s.textOf(operand, names)
		constant, isString := operands[1-i].Value.(ast.String)
		if isText && isString {
			return guard{text, []string{string(constant)}}, true
		}
	}
	return guard{}, false
}

// textOf reports which text a term is.
func (s *Selector) textOf(t *ast.Term, names map[ast.Var]int) (text int, ok bool) {
	switch v := t.Value.(type) {
	case ast.Var:
		text, ok = names[v]
		return text, ok
	case ast.Ref:
		text = slices.Index(s.Texts[:], fieldOf(v))
		return text, text >= 0
	}
	return 0, false
}

// fieldOf is the name of a field that a reference reads: input.NAME, and nothing below it. It is empty for every other reference.
func fieldOf(ref ast.Ref) string {
	if len(ref) != 2 || !ref.HasPrefix(ast.InputRootRef) {
		return ""
	}
	name, _ := ref[1].Value.(ast.String)
	return string(name)
}

func isMember(e *ast.Expr) bool { return e.Operator().Equal(ast.Member.Ref()) }

// stringsOf are the members of a list or set of nothing but strings that are written out.
func stringsOf(t *ast.Term) (out []string, ok bool) {
	ok = true
	add := func(t *ast.Term) {
		text, isString := t.Value.(ast.String)
		out, ok = append(out, string(text)), ok && isString
	}
	switch v := t.Value.(type) {
	case ast.Set:
		v.Foreach(add)
	case *ast.Array:
		v.Foreach(add)
	default:
		return nil, false
	}
	return out, ok
}

// isOpen reports whether a rule reads more of the input than the selector tells: it has a reference to the input that is neither one of the texts nor gives a name to a field of which
// the type is told, once, or it does something else with such a name than to ask for its type.
func (s *Selector) isOpen(r *ast.Rule) bool {
	told, questions := map[ast.Var]int{}, map[ast.Var]int{}
	ast.WalkExprs(r, func(e *ast.Expr) bool {
		if v, ok := s.namesTyped(e); ok {
			told[v]++
		}
		if v, ok := asksType(e); ok {
			questions[v]++
		}
		return false
	})
	seen, reads, isOpen := map[ast.Var]int{}, 0, false
	count := ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.With:
			isOpen = true
		case ast.Ref:
			if x.HasPrefix(ast.InputRootRef) && !slices.Contains(s.Texts[:], fieldOf(x)) {
				reads++
			}
		case ast.Var:
			seen[x]++
		}
		return false
	})
	count.Walk(r)
	count.Walk(r.Head.Reference) // which the visitor leaves out
	for v, n := range told {
		isOpen = isOpen || n != 1 || seen[v] != 1+questions[v]
	}
	return isOpen || reads != len(told)
}

// namesTyped recognizes an equation that gives a name to a field of which the type is told.
func (s *Selector) namesTyped(e *ast.Expr) (v ast.Var, ok bool) {
	if e.Negated || !e.IsEquality() || len(e.Operands()) != 2 {
		return "", false
	}
	v, isVar := e.Operand(0).Value.(ast.Var)
	ref, isRef := e.Operand(1).Value.(ast.Ref)
	if !isVar || !isRef {
		return "", false
	}
	_, isTyped := s.Types[fieldOf(ref)]
	return v, isTyped
}

// typeQuestions are the builtins that tell no more of their operand than its type.
var typeQuestions = []*ast.Builtin{ast.TypeNameBuiltin, ast.IsString, ast.IsNumber, ast.IsBoolean, ast.IsObject, ast.IsArray, ast.IsSet, ast.IsNull}

// asksType recognizes a question for the type of a variable.
func asksType(e *ast.Expr) (v ast.Var, ok bool) {
	if !e.IsCall() || !slices.ContainsFunc(typeQuestions, func(b *ast.Builtin) bool { return e.Operator().Equal(b.Ref()) }) {
		return "", false
	}
	v, ok = e.Operand(0).Value.(ast.Var)
	return v, ok
}
