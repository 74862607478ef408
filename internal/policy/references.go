package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

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

// readsOfGone reports where compiled modules read documents that are gone, or might, by a name that is known only when it is evaluated. Nothing would be found there,
// which makes a refusal vanish.
func readsOfGone(compiled map[string]*ast.Module, gone map[string]string) (out []Problem) {
	for _, name := range slices.Sorted(maps.Keys(compiled)) {
		seen := map[string]bool{}
		for _, r := range compiled[name].Rules {
			ast.WalkRefs(r, func(ref ast.Ref) bool {
				known := segments(ref)
				path, isOpen := dotted(known), len(known) < len(ref)
				for _, former := range slices.Sorted(maps.Keys(gone)) {
					document, text := "data."+former, ""
					switch {
					case seen[former]:
					case path == document || strings.HasPrefix(path, document+"."):
						text = document + " is gone: " + gone[former]
					case isOpen && strings.HasPrefix(document, path+"."):
						text = path + " is read by a name that is not written here: write it; " + document + " is gone: " + gone[former]
					}
					if text != "" {
						seen[former] = true
						problem := place{name, ref[0].Location}.problem(text)
						problem.Code = CodeName
						out = append(out, problem)
					}
				}
				return false
			})
		}
	}
	return out
}
