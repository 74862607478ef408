package policy

import (
	"maps"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// fields are what compiled modules may read of the input.
type fields struct {
	all   bool     // any field: by a name that is only known when it is evaluated, or by handing on the whole input
	names []string // of the fields, sorted
}

// fieldsRead finds what compiled modules may read of the input. After compilation every use of input is a reference; one that a "with" replaces counts as well.
func fieldsRead(modules map[string]*ast.Module) (out fields) {
	seen := map[string]bool{}
	look := func(x any) {
		ast.WalkRefs(x, func(ref ast.Ref) bool {
			if !ref.HasPrefix(ast.InputRootRef) {
				return false
			}
			name, isConstant := ast.String(""), false
			if len(ref) > 1 {
				name, isConstant = ref[1].Value.(ast.String)
			}
			out.all = out.all || !isConstant
			seen[string(name)] = true
			return false
		})
	}
	for _, m := range modules {
		look(m)
		ast.WalkRules(m, func(r *ast.Rule) bool {
			look(r.Head.Reference) // which the visitor leaves out
			return false
		})
	}
	out.names = slices.Sorted(maps.Keys(seen))
	return out
}

// has reports whether a field may be read.
func (f *fields) has(name string) bool {
	return f.all || slices.Contains(f.names, name)
}
