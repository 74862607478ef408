package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
)

// Format lays out one module as `opa fmt` does. The error of a module that cannot be parsed is a *ProblemsError.
func Format(file string, src []byte) ([]byte, error) {
	if p, tooDeep := tooDeeplyNested(file, string(src)); tooDeep {
		return nil, &ProblemsError{[]Problem{p}}
	}
	out, err := format.SourceWithOpts(file, src, format.Opts{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, &ProblemsError{problemsOf(file, err)}
	}
	return out, nil
}
