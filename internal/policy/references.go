package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// misreads reports where compiled modules read what is not there: documents that are gone and names that a closed document does not have, written here or, as far as that is open,
// found only when a rule is evaluated. Nothing would be found there, which makes a refusal vanish.
func (m Modules) misreads(compiled map[string]*ast.Module, data document) (out []Problem) {
	for _, name := range slices.Sorted(maps.Keys(compiled)) {
		seen := map[string]bool{}
		for _, r := range compiled[name].Rules {
			walkReads(r, func(ref ast.Ref, at *ast.Location) {
				for _, text := range m.misreadsOf(ref, data) {
					if !seen[text] {
						seen[text] = true
						out = append(out, place{name, at}.problem(CodeName, text))
					}
				}
			})
		}
	}
	return out
}

// walkRefs visits every reference, and says where it stands. Once names are resolved, the elements of references share their places with others of the module; the
// terms that hold references do not.
func walkRefs(x any, visit func(ref ast.Ref, at *ast.Location)) {
	var at *ast.Location
	ast.NewGenericVisitor(func(x any) bool {
		switch x := x.(type) {
		case *ast.Term:
			at = x.Location
		case ast.Ref:
			visit(x, at)
		}
		return false
	}).Walk(x)
}

// walkReads is walkRefs for a compiled rule, but for what a with puts something else in place of.
func walkReads(r *ast.Rule, visit func(ref ast.Ref, at *ast.Location)) {
	var at *ast.Location
	var walk func(x any) bool
	walk = func(x any) bool {
		switch x := x.(type) {
		case *ast.With:
			ast.NewGenericVisitor(walk).Walk(x.Value)
			return true
		case *ast.Term:
			at = x.Location
		case ast.Ref:
			visit(x, at)
		}
		return false
	}
	ast.NewGenericVisitor(walk).Walk(r)
}

// misreadsOf says what is wrong with a reference. One that ends above the names of a closed document stands for all of it, and what is read of that is not known.
func (m Modules) misreadsOf(ref ast.Ref, data document) (out []string) {
	known := segments(ref)
	path, isOpen := dotted(known), len(known) < len(ref)
	isAbove := func(document string) bool { return strings.HasPrefix(document, path+".") }
	for _, former := range slices.Sorted(maps.Keys(m.Gone)) {
		switch document := "data." + former; {
		case path == document || strings.HasPrefix(path, document+"."):
			out = append(out, document+" is gone: "+m.Gone[former])
		case isOpen && isAbove(document):
			out = append(out, path+" is read by a name that is not written here: write it; "+document+" is gone: "+m.Gone[former])
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, closed := range m.Closed {
		document := "data." + closed
		rest, isBelow := strings.CutPrefix(path, document+".")
		name, _, _ := strings.Cut(rest, ".")
		switch {
		case isBelow:
			if names := data.names(closed); !slices.Contains(names, name) {
				out = append(out, document+"."+name+" is read here, and there is no such name"+didYouMean(document, name, names))
			}
		case path == document || isAbove(document):
			what := " is taken as a value"
			if isOpen {
				what = " is read by a name that is not written here"
			}
			out = append(out, path+what+": name what is read: "+document+".NAME")
		}
	}
	return out
}

// names are those that a document of the data has.
func (d document) names(path string) (out []string) {
	ref := ast.Ref{}
	for word := range strings.SplitSeq(path, ".") {
		ref = append(ref, ast.StringTerm(word))
	}
	value, _ := d.object.Find(ref)
	if object, ok := value.(ast.Object); ok {
		for _, key := range object.Keys() {
			if name, ok := key.Value.(ast.String); ok {
				out = append(out, string(name))
			}
		}
	}
	return out
}
