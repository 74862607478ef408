package policy

import (
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// reserved are documents that no module may define or add to. Those below pipeguard come from configuration alone: a rule
// that defined them would decide in the name of the operator. OPA gives packages below system a meaning of its own.
var reserved = [][]string{
	{"pipeguard", "parameters"}, {"pipeguard", "policies"}, {"pipeguard", "modules"}, {"pipeguard", "scope"}, {"system"},
}

// reservedDocuments reports rules and packages that touch a reserved document, and test files whose package could
// change what they test: tests do not decide, so a rule in one must not be able to make the others pass.
func reservedDocuments(file string, m *ast.Module) []Problem {
	var out []Problem
	pkg := segments(m.Package.Path[1:])
	if touches(pkg, false) {
		out = append(out, at(m.Package.Location, CodeReserved, "package "+strings.Join(pkg, ".")+" is reserved"))
	}
	if isTestFile(file) && !strings.HasSuffix(pkg[len(pkg)-1], "_test") {
		out = append(out, at(m.Package.Location, CodeReserved, "the package of a test file must end in _test"))
	}
	for _, r := range m.Rules {
		document := append(slices.Clone(pkg), segments(r.Head.Ref())...)
		if touches(document, true) && len(out) == 0 {
			out = append(out, at(r.Location, CodeReserved, strings.Join(document, ".")+" is reserved"))
		}
	}
	return out
}

// segments returns the constant beginning of a reference.
func segments(ref ast.Ref) []string {
	var out []string
	for i, t := range ref {
		_, isText := t.Value.(ast.String)
		if _, isVar := t.Value.(ast.Var); !isText && (!isVar || i > 0) {
			break
		}
		out = append(out, nameOf(t))
	}
	return out
}

// touches reports whether a document lies in a reserved one or, if it is a rule's, around one.
func touches(document []string, rule bool) bool {
	return slices.ContainsFunc(reserved, func(r []string) bool { return overlap(document, r) && (rule || len(document) >= len(r)) })
}
