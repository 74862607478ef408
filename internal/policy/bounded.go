package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

const (
	// maxSeparator is more than any text that joins a list needs.
	maxSeparator = 64
	// maxRegex is more than anyone can read in a pattern; alternatives can be rules of their own.
	maxRegex = 1024
)

// bounded are the allowed functions of which one operand chooses a factor: concat repeats its separator, sprintf pads to
// the width in its format, and matching takes time in proportion to the text times the pattern. None of them looks at
// the time-out while it runs. So their first operand must be a constant, and a small one; else the author of an object
// that a policy takes it from could fill the memory or keep a core busy for minutes.
var bounded = []string{"concat", "sprintf", "regex.find_n", "regex.match", "regex.split"}

// boundedCalls looks for calls of these functions with another first operand.
func boundedCalls(m *ast.Module) []Problem {
	var out []Problem
	check := func(terms []*ast.Term) {
		if len(terms) == 0 {
			return
		}
		name := functionName(terms[0])
		if !slices.Contains(bounded, name) {
			return
		}
		var first ast.String
		ok := false
		if len(terms) > 1 {
			first, ok = terms[1].Value.(ast.String)
		}
		switch {
		case !ok:
			out = append(out, at(terms[0].Location, CodeBuiltin, "the first operand of "+name+" must be a constant string"))
		case name == "concat" && len(first) > maxSeparator:
			out = append(out, at(terms[0].Location, CodeBuiltin, "the separator of concat must be short"))
		case strings.HasPrefix(name, "regex.") && len(first) > maxRegex:
			out = append(out, at(terms[0].Location, CodeBuiltin, fmt.Sprintf("the pattern of %s has more than %d bytes", name, maxRegex)))
		case strings.HasPrefix(name, "regex.") && instructions(string(first)) > maxInstructions:
			out = append(out, at(terms[0].Location, CodeBuiltin, fmt.Sprintf("the repetitions in the pattern of %s make a program of more than %d instructions", name, maxInstructions)))
		case name == "sprintf" && !plainFormat(string(first)):
			out = append(out, at(terms[0].Location, CodeBuiltin, "the format of sprintf may use %s %v %d %q %t %x and %% only, without width, precision or index"))
		}
	}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		if terms, ok := e.Terms.([]*ast.Term); ok {
			check(terms)
		}
		for _, w := range e.With { // else a mock could call them under another name
			if name := functionName(w.Value); slices.Contains(bounded, name) {
				out = append(out, at(w.Location, CodeBuiltin, name+" cannot stand in for another function"))
			}
		}
		return false
	})
	ast.WalkTerms(m, func(t *ast.Term) bool {
		if call, ok := t.Value.(ast.Call); ok {
			check(call)
		}
		return false
	})
	return out
}

func functionName(t *ast.Term) string {
	switch v := t.Value.(type) {
	case ast.Var:
		return string(v)
	case ast.Ref:
		return v.String()
	}
	return ""
}

// plainFormat reports whether each verb of a format prints its operand as it is.
func plainFormat(s string) bool {
	for {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			return true
		}
		if i+1 == len(s) || !strings.ContainsRune("svdqtx%", rune(s[i+1])) {
			return false
		}
		s = s[i+2:]
	}
}
