package policy

import "github.com/open-policy-agent/opa/v1/ast"

// refersToObject reports whether a compiled module may read input.object: by its name, by a name that is only known when
// it is evaluated, or by handing on the whole input. After compilation every use of input is a reference.
func refersToObject(m *ast.Module) bool {
	found := false
	ast.WalkRefs(m, func(ref ast.Ref) bool {
		if !ref.HasPrefix(ast.InputRootRef) {
			return false
		}
		if len(ref) == 1 {
			found = true
			return true
		}
		name, constant := ref[1].Value.(ast.String)
		if !constant || name == "object" {
			found = true
		}
		return found
	})
	return found
}
