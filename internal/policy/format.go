package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
)

// Format lays out one module as `opa fmt` does. The error of a module that cannot be parsed, or that no
// compiler would be asked about because of its structure, is a *ProblemsError.
func Format(file string, src []byte) ([]byte, error) {
	if _, p := checkText(file, string(src)); p != nil {
		return nil, &ProblemsError{[]Problem{*p}}
	}
	// The formatter takes time that grows with the square of long chains. What cannot be parsed is its to report.
	if m, err := ast.ParseModuleWithOpts(file, string(src), ast.ParserOptions{RegoVersion: ast.RegoV1}); err == nil && m != nil {
		if problems := (Modules{Files: map[string]string{file: string(src)}}).tooComplex(map[string]*ast.Module{file: m}); len(problems) > 0 {
			return nil, &ProblemsError{sortProblems(problems)}
		}
	}
	out, err := format.SourceWithOpts(file, src, format.Opts{RegoVersion: ast.RegoV1})
	if err != nil {
		return nil, &ProblemsError{problemsOf(file, err)}
	}
	return out, nil
}
