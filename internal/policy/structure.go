package policy

import (
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// OPA's parser takes time in proportion to its text. Its compiler does not: each comprehension, every block or template
// around an expression multiplies the work by about three, the expressions of one body are compared with each other until
// an order is found, rules are compared with all that they build on, and each part of a name has a place of its own. Nothing interrupts it. So what modules ask of it is bounded before it is called; bounded by the parsed modules, since a text of
// a few hundred bytes can ask for hours. The built-in policies and their tests stay below a third of each bound, except
// that one of their tests reaches 1252 of maxRuleWork.
const (
	// maxClosures bounds comprehensions, every blocks and templates inside one another.
	maxClosures = 6
	// closureFactor is by how much a closure multiplies the work on what is in it.
	closureFactor = 3
	// maxRuleWork bounds the expressions, references, calls and variables of one rule with its else branches, each counted
	// closureFactor times for each closure around it.
	maxRuleWork = 1600
	// maxBranches bounds the bodies of one rule: the first and those of else.
	maxBranches = 64
	// maxRules bounds the rules of all modules, tests among them.
	maxRules = 1200
	// maxWork bounds the sum of the squares of the work of all rules.
	maxWork = 12 << 20
	// maxFollowed bounds the rules and else branches of all modules times the dependencies among these: the compiler follows all of them from each.
	maxFollowed = 32 << 20
	// maxImports bounds the imports of one module: each is compared with all others and looked for in the whole module.
	maxImports = 64
	// maxName bounds the parts of a rule's full name: data, its package and its own. The compiler keeps some kilobytes for each part of each name.
	maxName = 16
	// maxNameText bounds the bytes of a rule's full name, and of what a module imports: the compiler writes it wherever the text has a short name for it, and
	// in each message about it.
	maxNameText = 256
	// maxReference bounds the parts of any other reference.
	maxReference = 64
)

// tooComplex reports what would take the compiler longer than any policy needs.
func (m Modules) tooComplex(modules map[string]*ast.Module) []Problem {
	var out []Problem
	rules, work := 0, 0
	for _, name := range m.inOrder() {
		left := maxRules - rules
		if imports := modules[name].Imports; len(imports) > maxImports {
			out = append(out, at(imports[maxImports].Location, CodeLimit, fmt.Sprintf("%d imports, and a module has at most %d", len(imports), maxImports)))
		}
		for _, i := range modules[name].Imports {
			path, _ := i.Path.Value.(ast.Ref)
			switch {
			case len(path) > maxReference:
				out = append(out, at(i.Location, CodeLimit, tooLong(len(path))))
			case textOf(path) > maxNameText:
				out = append(out, at(i.Location, CodeLimit, fmt.Sprintf("what is imported has more than %d bytes: name a shorter part of it, and the rest where it is used", maxNameText)))
			}
		}
		path := modules[name].Package.Path
		if len(path) > maxName {
			out = append(out, at(modules[name].Package.Location, CodeLimit, fmt.Sprintf("the name of the package has more than %d parts", maxName-1))) // data is not written
		}
		prefix := textOf(path)
		if prefix > maxNameText {
			out = append(out, at(modules[name].Package.Location, CodeLimit, fmt.Sprintf("the name of the package has more than %d bytes", maxNameText)))
			prefix = 0 // which is said
		}
		for _, r := range modules[name].Rules {
			c := measure(r)
			c.name, c.text = len(path)+len(r.Head.Ref()), prefix+textOf(r.Head.Ref())
			rules, work = rules+1, work+min(c.work, maxRuleWork)*min(c.work, maxRuleWork)
			if message := c.excess(); message != "" {
				out = append(out, at(r.Location, CodeLimit, message))
			}
			if rules == maxRules+1 {
				out = append(out, at(r.Location, CodeLimit, fmt.Sprintf(
					"this is rule %d of all modules with their tests, and at most %d are taken: this file has %d, and %d were left for it", rules, maxRules, len(modules[name].Rules), left)))
			}
			if work > maxWork {
				return append(out, at(r.Location, CodeLimit, "all modules up to here are too complex together: take rules with many expressions apart"))
			}
			if len(out) >= maxProblems {
				return out
			}
		}
	}
	if len(out) == 0 {
		out = m.tooEntangled(modules)
	}
	return out
}

// textOf is how many bytes the parts of a reference have, with something between them.
func textOf(path ast.Ref) (bytes int) {
	for _, part := range path {
		switch v := part.Value.(type) {
		case ast.String:
			bytes += len(v) + 1
		case ast.Var:
			bytes += len(v) + 1
		}
	}
	return bytes
}

// tooEntangled reports the rule with the most dependencies, of those that were added if any were, if all modules have too many. A rule depends on each branch of what it refers to.
func (m Modules) tooEntangled(modules map[string]*ast.Module) []Problem {
	e := entanglement{branches: map[string]int{}}
	for _, module := range modules {
		e.packages = append(e.packages, module.Package.Path)
		for _, r := range module.Rules {
			for ; r != nil; r = r.Else {
				e.branches[nameOf(r.Head.Ref()[0])]++
				e.all++
			}
		}
	}
	sum, most, heaviest := 0, -1, (*ast.Rule)(nil)
	isOfBase := true // the heaviest
	for _, name := range m.inOrder() {
		e.imports = map[string]ast.Ref{}
		for _, i := range modules[name].Imports {
			if path, ok := i.Path.Value.(ast.Ref); ok {
				e.imports[string(i.Name())] = path
			}
		}
		for _, r := range modules[name].Rules {
			n := 0
			for branch := r; branch != nil; branch = branch.Else {
				n += e.dependencies(branch)
			}
			if sum += n; n > most || isOfBase && !m.isBase(name) {
				most, heaviest, isOfBase = n, r, m.isBase(name)
			}
		}
	}
	if sum <= maxFollowed/max(1, e.all) {
		return nil
	}
	return []Problem{at(heaviest.Location, CodeLimit, fmt.Sprintf(
		"all modules are too complex together: %d rules and branches of else depend %d times on each other, this one %d times; a reference counts once for each branch of what it names", e.all, sum, most))}
}

// entanglement counts what rules depend on, by names alone and so rather too much than too little.
type entanglement struct {
	branches map[string]int // of all rules of a name, in whatever package
	all      int
	packages []ast.Ref
	imports  map[string]ast.Ref // of the module that is looked at
	seen     map[string]bool    // names in the branch that is looked at
	isAll    bool               // it refers to a whole package
	count    int
}

// dependencies are the branches that one branch of a rule refers to, at most.
func (e *entanglement) dependencies(branch *ast.Rule) int {
	e.seen, e.isAll, e.count = map[string]bool{}, false, 0
	var walk func(x any) bool
	walk = func(x any) bool {
		switch x := x.(type) {
		case *ast.Rule:
			return x != branch
		case *ast.TemplateString: // OPA's visitor passes by what is in it
			for _, part := range x.Parts {
				ast.NewGenericVisitor(walk).Walk(part)
			}
		case ast.Ref:
			e.refersTo(x)
		case ast.Var:
			e.names(string(x))
		}
		return false
	}
	ast.NewGenericVisitor(walk).Walk(branch)
	if e.isAll {
		return e.all
	}
	return min(e.count, e.all)
}

func (e *entanglement) names(name string) {
	if name == "" || e.seen[name] {
		return
	}
	e.seen[name] = true
	e.count += e.branches[name]
	if path, ok := e.imports[name]; ok {
		e.refersTo(path)
	}
}

func (e *entanglement) refersTo(r ast.Ref) {
	for _, t := range r {
		e.names(nameOf(t))
	}
	if !e.isAll && r.HasPrefix(ast.DefaultRootRef) {
		ground := r.GroundPrefix()
		e.isAll = slices.ContainsFunc(e.packages, func(path ast.Ref) bool { return path.HasPrefix(ground) })
	}
}

// nameOf is a variable's name or a string; nothing for other terms.
func nameOf(t *ast.Term) string {
	switch v := t.Value.(type) {
	case ast.Var:
		return string(v)
	case ast.String:
		return string(v)
	}
	return ""
}

// complexity is what one rule asks of the compiler.
type complexity struct {
	work, closures, branches int
	name, reference          int // parts of the rule's full name, and of the longest reference in it
	text                     int // bytes of the full name
	depth, weight            int // where measure is
}

func (c *complexity) excess() string {
	switch {
	case c.closures > maxClosures:
		return fmt.Sprintf("more than %d comprehensions, every blocks or templates inside one another", maxClosures)
	case c.text > maxNameText:
		return fmt.Sprintf("the name of the rule with its package has more than %d bytes", maxNameText)
	case c.name > maxName:
		return fmt.Sprintf("the name of the rule with its package has %d parts, and at most %d are taken", c.name-1, maxName-1)
	case c.reference > maxReference:
		return tooLong(c.reference)
	case c.branches > maxBranches:
		return fmt.Sprintf("%d branches, and a rule has at most %d", c.branches, maxBranches)
	case c.work > maxRuleWork:
		return fmt.Sprintf("the rule is too complex: expressions, references, calls and variables, three times those in a comprehension, are %d, and at most %d are taken", c.work, maxRuleWork)
	}
	return ""
}

func tooLong(parts int) string {
	return fmt.Sprintf("a reference has %d parts, and at most %d are taken", parts, maxReference)
}

// measure stops soon after a bound is exceeded: it takes time in proportion to the text in any case.
func measure(r *ast.Rule) *complexity {
	c := &complexity{weight: 1}
	ast.NewBeforeAfterVisitor(c.enter, c.leave).Walk(r)
	return c
}

func (c *complexity) enter(x any) (skip bool) {
	if r, ok := x.(ast.Ref); ok {
		c.reference = max(c.reference, len(r))
	}
	switch x.(type) {
	case *ast.Rule:
		c.branches++
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.Every, *ast.TemplateString:
		c.work += c.weight
		c.depth++
		c.closures = max(c.closures, c.depth)
		if c.depth <= maxClosures+1 { // beyond, nothing matters, and nothing overflows
			c.weight *= closureFactor
		}
		if template, ok := x.(*ast.TemplateString); ok { // OPA's visitor passes by what is in it
			for _, part := range template.Parts {
				ast.NewBeforeAfterVisitor(c.enter, c.leave).Walk(part)
			}
			return true
		}
	case *ast.Expr, *ast.With, ast.Ref, ast.Call, ast.Var:
		c.work += c.weight
	}
	return false
}

func (c *complexity) leave(x any) {
	switch x.(type) {
	case *ast.ArrayComprehension, *ast.SetComprehension, *ast.ObjectComprehension, *ast.Every, *ast.TemplateString:
		if c.depth <= maxClosures+1 {
			c.weight /= closureFactor
		}
		c.depth--
	}
}
