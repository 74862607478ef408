package policy

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
	"github.com/open-policy-agent/opa/v1/types"
)

// A code says whose finding it is: the title, the remedy and the link that a refusal shows are those of the code. So an addition says neither a code that
// another author or the base describes, nor one that only the built-in policies and the engine have. What stands in the rule is refused before it is
// compiled; what comes to be by an evaluation ends that, and so does a finding that a decision would not take: a test of the module sees it first.

// ownCodes are for the built-in policies and the engine, and so is what a reader could take for one of theirs.
var ownCodes = regexp.MustCompile(`^P[GN]`)

// findingBuiltin takes the document that a finding is added to, the finding, and the codes that others describe, and ends the evaluation if the finding has
// one of these or would not be taken. What is wrong with advice otherwise takes nothing else away: it is left out. No module may name the function: the
// rules of additions are given calls.
const findingBuiltin = "internal.charge_finding"

var findingCheck = &ast.Builtin{Name: findingBuiltin, Decl: types.NewFunction(types.Args(types.S, types.A, types.NewSet(types.S)), nil)}

func init() {
	register(findingCheck, func(_ topdown.BuiltinContext, operands []*ast.Term) (*ast.Term, error) {
		others, ok := operands[2].Value.(ast.Set)
		if !ok {
			return nil, errCharge
		}
		f, err := decodeFinding(operands[1].Value)
		switch {
		case err != nil && stringOf(operands[0]) == adviceName:
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("%w: %w", errFinding, err)
		case isForeign(f.Code, others):
			return nil, fmt.Errorf("%w: %w: %s", errFinding, errForeign, f.Code)
		}
		return nil, nil
	})
}

var (
	errFinding = errors.New("a finding of a module is not taken")
	errForeign = errors.New("the code is not the module's own")
)

// isForeign reports whether a code is for others to say.
func isForeign(code string, others ast.Set) bool {
	return ownCodes.MatchString(code) || others.Contains(ast.StringTerm(code))
}

// codeProblem says what is wrong with the code of a finding as it stands in a rule; nothing if that will show when it is evaluated.
func codeProblem(finding *ast.Term, others ast.Set) string {
	o, ok := finding.Value.(ast.Object)
	if !ok {
		return ""
	}
	t := o.Get(ast.StringTerm("code"))
	if t == nil {
		return ""
	}
	code, ok := t.Value.(ast.String)
	switch {
	case !ok:
		return ""
	case !codePattern.MatchString(string(code)):
		return fmt.Sprintf("code %.40q of a finding: want %s", string(code), codeForm)
	case isForeign(string(code), others):
		return "a finding has the code " + string(code) + ", which is not this module's: give findings codes of your own"
	}
	return ""
}

// guardCodes lets the rules by which additions add findings see to their codes. files says which file describes each code.
func (a *additions) guardCodes(files map[string]string) (out []Problem) {
	for code, file := range files {
		if m := a.parsed[file]; m != nil && ownCodes.MatchString(code) {
			out = append(out, at(m.Package.Location, CodeAddition, "code "+code+" is for the built-in policies, as all that begin with PG or PN: give findings codes of your own"))
		}
	}
	for name, m := range a.parsed {
		others := ast.NewSet()
		for code, file := range files {
			if a.isBase(file) || a.owner(file) != a.owner(name) {
				others.Add(ast.StringTerm(code))
			}
		}
		pkg := segments(m.Package.Path)
		for _, r := range m.Rules {
			path := append(pkg[:len(pkg):len(pkg)], segments(r.Head.Ref())...)
			if !a.adds(path, r) || r.Head.Key == nil {
				continue
			}
			if problem := codeProblem(r.Head.Key, others); problem != "" {
				out = append(out, at(r.Location, CodeAddition, problem))
				continue
			}
			key := r.Head.Key
			finding := func() *ast.Term { return ast.VarTerm("$finding").SetLocation(key.Location) } // which no module can write
			document, foreign := ast.StringTerm(path[len(path)-1]).SetLocation(key.Location), ast.NewTerm(others).SetLocation(key.Location)
			for _, e := range []*ast.Expr{ast.Equality.Expr(finding(), key), findingCheck.Expr(document, finding(), foreign)} {
				e.Location = key.Location
				r.Body.Append(e)
			}
			r.Head.Key = finding()
		}
	}
	return out
}
