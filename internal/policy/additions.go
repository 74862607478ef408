package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/util"
)

// An addition can refuse more, never less: it adds to the two open documents of its base, and defines helpers under names
// that neither the base nor another author defines or reads. OPA has one name space for all modules; without this
// check a helper called privilege_permits, or startswith, would change what the base's own rules mean.
//
// The check has two halves. checkDefinitions looks at what additions define, before anything is compiled. checkReads
// looks at what compiled modules read: there every name is resolved, so that an added definition that a rule of the base
// picked up in any way, for instance in the place of a variable or of a function of Rego, appears as a reference to it.

// openNames are the documents beside the entry point that additions add to. An element that is in them stays in them.
var openNames = []string{findingsName, adviceName}

// definition is what one rule of an addition defines.
type definition struct {
	path  []string // "data" and the constant beginning of the rule's name
	pkg   []string // the package, with which path begins
	owner string
	open  bool // the rule adds elements to an open document
	at    *ast.Location
}

func (d definition) name() string { return dotted(d.path) }

func (d definition) problem(format string, args ...any) Problem {
	return at(d.at, CodeAddition, d.name()+" "+fmt.Sprintf(format, args...))
}

// additions are what a set of modules adds to its base.
type additions struct {
	modules Modules
	home    []string               // the package of the entry point, "data" first
	base    [][]string             // what the rules of the base define, and advice
	defined []definition           // what added rules define
	parsed  map[string]*ast.Module // the added modules that decide
	homes   [][]string             // the packages of all modules that decide
	helpers []definition           // what test files define beside tests
	owner   func(file string) string
}

// newAdditions sorts the parsed modules of a set that has a Base. entry is the document that is asked for.
func newAdditions(m Modules, parsed map[string]*ast.Module, entry ast.Ref) *additions {
	a := &additions{modules: m, home: segments(entry[:len(entry)-1]), parsed: map[string]*ast.Module{}, owner: m.Owner}
	if a.owner == nil {
		a.owner = func(string) string { return "" }
	}
	a.base = [][]string{append(slices.Clone(a.home), adviceName)} // asked for in any case
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		pkg := segments(parsed[name].Package.Path)
		if isTestFile(name) { // which does not decide
			for _, r := range parsed[name].Rules {
				if _, isTest := ruleOf(parsed[name], r); !isTest {
					a.helpers = append(a.helpers, definition{path: append(slices.Clone(pkg), segments(r.Head.Ref())...), pkg: pkg, owner: a.owner(name), at: r.Location})
				}
			}
			continue
		}
		a.homes = append(a.homes, pkg)
		for _, r := range parsed[name].Rules {
			path := append(slices.Clone(pkg), segments(r.Head.Ref())...)
			if a.isBase(name) {
				a.base = append(a.base, path)
				continue
			}
			a.defined = append(a.defined, definition{path: path, pkg: pkg, owner: a.owner(name), open: a.adds(path, r), at: r.Location})
		}
		if !a.isBase(name) {
			a.parsed[name] = parsed[name]
		}
	}
	return a
}

func (a *additions) isBase(file string) bool { return a.modules.isBase(file) }

// adds reports whether a rule adds elements to an open document, and does nothing else to it.
func (a *additions) adds(path []string, r *ast.Rule) bool {
	n := len(a.home)
	return len(path) == n+1 && slices.Equal(path[:n], a.home) && slices.Contains(openNames, path[n]) &&
		len(r.Head.Ref()) <= n+1 && r.Head.Ref().IsGround() && r.Head.RuleKind() == ast.MultiValue &&
		len(r.Head.Args) == 0 && !r.Default && r.Else == nil
}

// checkDefinitions reports additions that replace a file of the base, or define a document that is not theirs.
func (a *additions) checkDefinitions() []Problem {
	out := a.checkFiles()
	for i, d := range a.defined {
		if !d.open {
			out = append(out, a.checkName(d, a.defined[:i])...)
		} else if d.path[len(a.home)] == findingsName && !slices.ContainsFunc(a.base, func(b []string) bool { return overlap(b, d.path) }) {
			out = append(out, d.problem("is not defined by the base policy, which would not ask for it"))
		}
	}
	first := map[string]definition{} // by name
	for _, d := range a.helpers {
		switch other, ok := first[d.name()]; {
		case !ok:
			first[d.name()] = d
		case other.owner != d.owner:
			out = append(out, d.problem("is also defined by the tests of another module (%s): give your tests a package of their own", other.at.File))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.parsed)) {
		ast.WalkWiths(a.parsed[name], func(w *ast.With) bool {
			out = append(out, at(w.Location, CodeAddition, "with is for tests: a rule that decides judges the input and the data that it was given"))
			return false
		})
	}
	return out
}

// checkFiles holds that the files of the base that decide are there, and that none of its files is another one.
func (a *additions) checkFiles() []Problem {
	var out []Problem
	for _, name := range a.modules.Base.names() {
		text, ok := a.modules.Files[name]
		switch {
		case !ok && !isTestFile(name):
			out = append(out, Problem{File: name, Code: CodeAddition, Message: "this file of the base policy is left out"})
		case ok && text != a.modules.Base.Files[name]:
			out = append(out, Problem{File: name, Code: CodeAddition, Message: "this name is taken by a file of the base policy"})
		}
	}
	return out
}

// checkName reports a helper whose name belongs to the base, to Rego or to another author. before are the definitions
// ahead of d; each pair of authors is compared once.
func (a *additions) checkName(d definition, before []definition) []Problem {
	var out []Problem
	if slices.ContainsFunc(a.base, func(b []string) bool { return overlap(b, d.path) }) {
		out = append(out, d.problem("belongs to the base policy: an addition adds to %s (with contains), and gives helpers names of their own", strings.Join(openNames, " or ")))
	}
	if a.hidesRego(d.path) {
		out = append(out, d.problem("would hide a function of Rego, input or data"))
	}
	for _, other := range before {
		if other.owner != d.owner && !other.open && overlap(other.path, d.path) {
			out = append(out,
				d.problem("is also defined by another module (%s): begin the names of helpers with a word of your own", other.at.File),
				other.problem("is also defined by another module (%s): begin the names of helpers with a word of your own", d.at.File))
		}
	}
	return out
}

// checkReads reports what compiled modules read across the border between the base and its additions, or between additions of
// different owners, and additions that read what does not exist: in Rego an undefined name makes a refusal vanish.
func (a *additions) checkReads(compiled map[string]*ast.Module, data document) []Problem {
	var out []Problem
	for _, name := range slices.Sorted(maps.Keys(compiled)) {
		isBase, reader, seen := a.isBase(name), a.owner(name), map[string]bool{}
		for _, r := range compiled[name].Rules { // the name of the package is a reference, too, but is not read
			walkRefs(r, func(ref ast.Ref, at *ast.Location) {
				if path := segments(ref); ref.HasPrefix(ast.DefaultRootRef) && !seen[dotted(path)] {
					seen[dotted(path)] = true
					where := place{name, at}
					out = append(out, a.checkRead(path, where, isBase, reader)...)
					if !isBase && !a.exists(path, data) {
						out = append(out, where.problem(CodeAddition, dotted(path)+" is read here, and nothing defines it"))
					}
				}
			})
		}
	}
	return out
}

func (a *additions) checkRead(path []string, where place, isBase bool, reader string) []Problem {
	var out []Problem
	for _, d := range a.defined {
		switch {
		case d.open || !overlap(d.path, path):
		case isBase:
			out = append(out, d.problem("is read by the base policy (%s)", where))
		case d.owner != reader:
			out = append(out, d.problem("is read by another module (%s)", where), where.problem(CodeAddition, d.name()+" belongs to another module ("+d.at.File+")"))
		}
	}
	return out
}

// blame has the problems of recursion name added files. The base closes no circle by itself, and the compiler names whichever rule of one it comes to first.
func (a *additions) blame(compiler *ast.Compiler, problems []Problem) []Problem {
	isRecursion := func(p Problem) bool { return p.Code == ast.RecursionErr }
	if a.modules.Base == nil || !slices.ContainsFunc(problems, isRecursion) {
		return problems
	}
	if circles := a.circles(compiler); len(circles) > 0 {
		problems = append(slices.DeleteFunc(problems, isRecursion), circles...)
	}
	return problems
}

// circles reports the references in added rules that lead back to the rule that they are in.
func (a *additions) circles(compiler *ast.Compiler) (out []Problem) {
	for _, name := range slices.Sorted(maps.Keys(a.parsed)) {
		for _, r := range compiler.Modules[name].Rules {
			back := leadTo(compiler.Graph, r)
			walkRefs(r, func(ref ast.Ref, at *ast.Location) {
				if len(out) == maxProblems || !ref.HasPrefix(ast.DefaultRootRef) {
					return
				}
				mayBe := compiler.GetRulesDynamicWithOpts(ref, ast.RulesOptions{IncludeHiddenModules: true})
				if !slices.ContainsFunc(mayBe, func(to *ast.Rule) bool { return back[to] }) {
					return
				}
				what := dotted(segments(ref))
				if len(segments(ref)) < len(ref) {
					what += "[…]"
				}
				where := place{name, cmp.Or(at, r.Location)}
				out = append(out, where.problem(ast.RecursionErr, fmt.Sprintf("%s is read here, by a rule of %s, and rests on that rule itself", what, r.Ref().GroundPrefix())))
			})
		}
	}
	return out
}

// leadTo are the rules and branches of else that depend on a rule, or on what does, among them itself.
func leadTo(g *ast.Graph, r *ast.Rule) map[util.T]bool {
	found := map[util.T]bool{}
	var next []util.T
	for ; r != nil; r = r.Else {
		next = append(next, r)
	}
	for len(next) > 0 {
		x := next[len(next)-1]
		if next = next[:len(next)-1]; found[x] {
			continue
		}
		found[x] = true
		for d := range g.Dependents(x) {
			next = append(next, d)
		}
	}
	return found
}

// exists reports whether a rule defines something at, around or below a path, or the data holds it. What configuration
// provides may be absent, except the parameters of a module, which are there whenever the module is.
func (a *additions) exists(path []string, data document) bool {
	if len(path) > len(modulesData) && slices.Equal(path[:len(modulesData)], modulesData) {
		path = path[:len(modulesData)+1]
	} else if slices.ContainsFunc(reserved, func(r []string) bool { return overlap(path[1:], r) }) {
		return true
	}
	isAround := func(other []string) bool { return overlap(other, path) }
	if slices.ContainsFunc(a.base, isAround) || slices.ContainsFunc(a.defined, func(d definition) bool { return isAround(d.path) }) {
		return true
	}
	ref := make(ast.Ref, len(path)-1)
	for i, word := range path[1:] {
		ref[i] = ast.StringTerm(word)
	}
	_, err := data.object.Find(ref)
	return err == nil
}

// modulesData is where the parameters of additions are, by the name of their owner.
var modulesData = []string{"data", "pipeguard", "modules"}

// overlap reports whether one document is, or lies within, the other.
func overlap(a, b []string) bool {
	n := min(len(a), len(b))
	return slices.Equal(a[:n], b[:n])
}

// regoRoots are the first words of all names of functions that OPA knows, infix operators among them, and of its documents.
var regoRoots = func() map[string]bool {
	roots := map[string]bool{"input": true, "data": true}
	for _, b := range ast.CapabilitiesForThisVersion().Builtins {
		root, _, _ := strings.Cut(b.Name, ".")
		roots[root] = true
	}
	return roots
}()

// hidesRego reports whether a call of a function of Rego would call the document instead, in some package, or what is read of the input be read of it.
func (a *additions) hidesRego(path []string) bool {
	return slices.ContainsFunc(a.homes, func(pkg []string) bool {
		return len(path) > len(pkg) && slices.Equal(path[:len(pkg)], pkg) && regoRoots[path[len(pkg)]]
	})
}

func dotted(path []string) string { return strings.Join(path, ".") }

// place is where a compiled module reads a name. The compiler keeps most locations.
type place struct {
	file string
	at   *ast.Location
}

func (p place) String() string {
	if p.at == nil || p.at.Row == 0 {
		return p.file
	}
	return fmt.Sprintf("%s:%d", p.file, p.at.Row)
}

func (p place) problem(code, message string) Problem {
	out := at(p.at, code, message)
	if out.File = p.file; out.Line == 0 {
		out.Col = 0
	}
	return out
}
