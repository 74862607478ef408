package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// checkSpelling reports definitions that look like one of an open document, in whose place they would decide nothing.
func (a *additions) checkSpelling() (out []Problem) {
	for _, d := range a.defined {
		if near := a.meant(d); near != "" {
			out = append(out, at(d.at, CodeName, fmt.Sprintf("%s decides nothing: did you mean %s?", d.name(), near)))
		}
	}
	return out
}

// meant is the package or the rule that the author of a definition may have meant to write.
func (a *additions) meant(d definition) string {
	n := len(a.home)
	if len(d.path) <= n {
		return ""
	}
	pkg, home, name := dotted(d.path[:n]), dotted(a.home), d.path[n]
	near := Nearest(name, openNames)
	switch {
	case pkg != home && Nearest(pkg, []string{home}) != "":
		return "package " + dotted(a.home[1:])
	case pkg == home && near != "" && near != name && distance(strings.ToLower(name), near) <= maxTypos:
		return near
	}
	return ""
}

// maxTypos is in how many letters a name may differ from one that was meant.
const maxTypos = 2

// checkInput reports fields of the input that modules read, and that no input has.
func (a *additions) checkInput(compiled map[string]*ast.Module) []Problem {
	if a.modules.InputSchema == nil {
		return nil
	}
	var schema inputSchema
	if err := json.Unmarshal(a.modules.InputSchema, &schema); err != nil {
		return []Problem{{Code: CodeInternal, Message: "schema of the input: " + err.Error()}}
	}
	var out []Problem
	for _, name := range slices.Sorted(maps.Keys(compiled)) {
		if a.isBase(name) {
			continue
		}
		ast.WalkRefs(compiled[name], func(ref ast.Ref) bool {
			if ref.HasPrefix(ast.InputRootRef) {
				if fault := schema.fault(ref); fault != "" {
					p := place{name, ref[0].Location}.problem(fault)
					p.Code = CodeName
					out = append(out, p)
				}
			}
			return false
		})
	}
	return out
}

// inputSchema is what is read of a JSON Schema.
type inputSchema struct {
	Properties           map[string]*inputSchema `json:"properties"`
	AdditionalProperties any                     `json:"additionalProperties"`
	Items                *inputSchema            `json:"items"`
}

// fault is what is wrong with a reference to the input, as far as its names are constant.
func (s *inputSchema) fault(ref ast.Ref) string {
	for i, term := range ref[1:] {
		if s.Items != nil {
			s = s.Items
			continue
		}
		word, ok := term.Value.(ast.String)
		if s.AdditionalProperties != false || !ok {
			return ""
		}
		next := s.Properties[string(word)]
		if next == nil {
			fault := ref[:i+2].String() + " is read here, and no input has it"
			if near := Nearest(string(word), slices.Collect(maps.Keys(s.Properties))); near != "" {
				fault += fmt.Sprintf(": did you mean %s.%s?", ref[:i+1], near)
			}
			return fault
		}
		s = next
	}
	return ""
}
