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
// compiled; what comes to be by an evaluation ends that.

// ownCodes are those of the built-in policies and the engine.
var ownCodes = regexp.MustCompile(`^P[GN][0-9]+$`)

// codeBuiltin takes a finding and the codes that others describe, and ends the evaluation if the finding has one of these. No module may name it: the rules
// of additions are given calls.
const codeBuiltin = "internal.charge_code"

var codeCheck = &ast.Builtin{Name: codeBuiltin, Decl: types.NewFunction(types.Args(types.A, types.NewSet(types.S)), nil)}

func init() {
	register(codeCheck, func(_ topdown.BuiltinContext, operands []*ast.Term) (*ast.Term, error) {
		others, ok := operands[1].Value.(ast.Set)
		if !ok {
			return nil, errCharge
		}
		if code, isForeign := foreignCode(operands[0], others); isForeign {
			return nil, fmt.Errorf("%w: %s", errCode, code)
		}
		return nil, nil
	})
}

var errCode = errors.New("a module says a code that is not its own")

// foreignCode returns the code of a finding, if that is for others to say.
func foreignCode(finding *ast.Term, others ast.Set) (code string, isForeign bool) {
	o, ok := finding.Value.(ast.Object)
	if !ok {
		return "", false
	}
	t := o.Get(ast.StringTerm("code"))
	if t == nil {
		return "", false
	}
	code = stringOf(t)
	return code, ownCodes.MatchString(code) || others.Contains(t)
}

// guardCodes lets the rules by which additions add findings see to their codes. files says which file describes each code.
func (a *additions) guardCodes(files map[string]string) (out []Problem) {
	for code, file := range files {
		if m := a.parsed[file]; m != nil && ownCodes.MatchString(code) {
			out = append(out, at(m.Package.Location, CodeAddition, "code "+code+" is one of the built-in policies: give findings codes of your own"))
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
			if !a.adds(append(pkg[:len(pkg):len(pkg)], segments(r.Head.Ref())...), r) || r.Head.Key == nil {
				continue
			}
			if code, isForeign := foreignCode(r.Head.Key, others); isForeign {
				out = append(out, at(r.Location, CodeAddition, "a finding has the code "+code+", which is not this module's: give findings codes of your own"))
				continue
			}
			key := r.Head.Key
			finding := func() *ast.Term { return ast.VarTerm("$finding").SetLocation(key.Location) } // which no module can write
			for _, e := range []*ast.Expr{ast.Equality.Expr(finding(), key), codeCheck.Expr(finding(), ast.NewTerm(others).SetLocation(key.Location))} {
				e.Location = key.Location
				r.Body.Append(e)
			}
			r.Head.Key = finding()
		}
	}
	return out
}
