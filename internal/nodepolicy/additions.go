package nodepolicy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/policy"
)

var (
	// home is the package of the built-in policy.
	home = []string{"data", "pipeguard", "node"}
	// open are the documents of it that additions add to. Nothing can take back what is in them.
	open = []string{"findings", "advice"}
)

// checkAddition refuses a module that changes what the built-in rules mean: one that says who is named, for example.
// A module that cannot be parsed is left to the compiler, which says where and why.
func checkAddition(name, text string, builtIn map[string]bool) error {
	if strings.HasSuffix(name, testSuffix) {
		return nil // tests do not decide
	}
	for _, d := range documents(name, text) {
		n := min(len(d), len(home))
		switch {
		case !slices.Equal(d[:n], home[:n]):
		case len(d) <= len(home):
			return fmt.Errorf("%s: %s would replace the built-in policy", name, strings.Join(d, "."))
		case builtIn[d[n]] && !slices.Contains(open, d[n]):
			return fmt.Errorf("%s: %s is a rule of the built-in policy; additions add to %s", name, strings.Join(d, "."), strings.Join(open, " and "))
		}
	}
	return nil
}

// builtInRules are the names of the rules that decide in the built-in policy.
func builtInRules(m policy.Modules) map[string]bool {
	out := map[string]bool{}
	for name, text := range m.WithoutTests() {
		for _, d := range documents(name, text) {
			out[d[len(home)]] = true
		}
	}
	return out
}

// documents are the constant beginnings of what the rules of a module define, "data" first.
func documents(name, text string) [][]string {
	if _, err := policy.Format(name, []byte(text)); err != nil { // it bounds what the parser is given
		return nil
	}
	m, err := ast.ParseModuleWithOpts(name, text, ast.ParserOptions{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil
	}
	var out [][]string
	for _, r := range m.Rules {
		out = append(out, append(constants(m.Package.Path), constants(r.Head.Ref())...))
	}
	return out
}

func constants(ref ast.Ref) []string {
	var out []string
	for i, t := range ref {
		switch v := t.Value.(type) {
		case ast.String:
			out = append(out, string(v))
		case ast.Var:
			if i > 0 {
				return out
			}
			out = append(out, string(v))
		default:
			return out
		}
	}
	return out
}
