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

// checkPackages reports findings and advice of packages that are not asked for them, and that no other package reads.
func (a *additions) checkPackages(compiled map[string]*ast.Module) (out []Problem) {
	for _, d := range a.defined {
		n := len(d.pkg)
		if slices.Equal(d.pkg, a.home) || len(d.path) <= n || !slices.Contains(openNames, d.path[n]) || a.meant(d) != "" || isRead(d, compiled) {
			continue
		}
		out = append(out, at(d.at, CodeName, fmt.Sprintf("%s is read nowhere, and decides nothing: did you mean package %s?", d.name(), dotted(a.home[1:]))))
	}
	return out
}

// isRead reports whether a module of another package reads what d defines.
func isRead(d definition, compiled map[string]*ast.Module) (found bool) {
	for _, m := range compiled {
		if slices.Equal(segments(m.Package.Path), d.pkg) {
			continue
		}
		for _, r := range m.Rules {
			ast.WalkRefs(r, func(ref ast.Ref) bool {
				found = found || ref.HasPrefix(ast.DefaultRootRef) && overlap(segments(ref), d.path)
				return found
			})
		}
	}
	return found
}

// checkInput reports fields of the input that modules read, and that no input has: after input itself, and after a variable
// that stands for a part of it.
func (a *additions) checkInput(compiler *ast.Compiler) []Problem {
	if a.modules.InputSchema == nil {
		return nil
	}
	var input inputSchema
	if err := json.Unmarshal(a.modules.InputSchema, &input); err != nil {
		return []Problem{{Code: CodeInternal, Message: "schema of the input: " + err.Error()}}
	}
	var out []Problem
	for _, name := range slices.Sorted(maps.Keys(compiler.Modules)) {
		if a.isBase(name) {
			continue
		}
		parts := partsOf(compiler.Modules[name], &input)
		walkRefs(compiler.Modules[name], func(ref ast.Ref, at *ast.Location) {
			if _, fault := parts.follow(ref); fault != nil {
				out = append(out, place{name, at}.problem(CodeName, fault.text(ref, compiler.RewrittenVars)))
			}
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

// inputParts are the parts of the input that variables of a compiled module stand for; nil for one that may stand for something
// else. The compiler gives every variable a name of its own, and puts what binds a variable before what uses it.
type inputParts map[ast.Var]*inputSchema

func partsOf(m *ast.Module, input *inputSchema) inputParts {
	p := inputParts{ast.Var("input"): input}
	ast.WalkExprs(m, func(e *ast.Expr) bool {
		if every, ok := e.Terms.(*ast.Every); ok {
			if domain := p.of(every.Domain); domain != nil {
				p.bind(every.Value, domain.Items)
			}
			return false
		}
		if e.IsEquality() && !e.Negated {
			left, right := e.Operand(0), e.Operand(1)
			p.equal(left, right)
			p.equal(right, left)
		}
		return false
	})
	return p
}

// equal binds a variable to what it is equal to. Another variable that stands for nothing known says nothing about it.
func (p inputParts) equal(variable, other *ast.Term) {
	part := p.of(other)
	if _, ok := other.Value.(ast.Var); !ok || part != nil {
		p.bind(variable, part)
	}
}

func (p inputParts) bind(term *ast.Term, part *inputSchema) {
	v, ok := term.Value.(ast.Var)
	if !ok {
		return
	}
	if before, ok := p[v]; ok && before != part {
		part = nil
	}
	p[v] = part
}

// of is the part of the input that a term stands for; nil if that is not known.
func (p inputParts) of(term *ast.Term) *inputSchema {
	switch x := term.Value.(type) {
	case ast.Var:
		return p[x]
	case ast.Ref:
		part, _ := p.follow(x)
		return part
	}
	return nil
}

// misspelling is a name at a position of a reference, where the input has others.
type misspelling struct {
	at     int
	fields []string
}

// follow looks for the part of the input that a reference stands for, as far as its names are constant.
func (p inputParts) follow(ref ast.Ref) (*inputSchema, *misspelling) {
	head, ok := ref[0].Value.(ast.Var)
	part := p[head]
	if !ok || part == nil {
		return nil, nil
	}
	for i, term := range ref[1:] {
		if part.Items != nil {
			part = part.Items
			continue
		}
		word, ok := term.Value.(ast.String)
		if part.AdditionalProperties != false || !ok {
			return nil, nil
		}
		next := part.Properties[string(word)]
		if next == nil {
			return nil, &misspelling{i + 1, slices.Collect(maps.Keys(part.Properties))}
		}
		part = next
	}
	return part, nil
}

// text says what is wrong with a reference, with the names of variables as they are written.
func (m *misspelling) text(ref ast.Ref, names map[ast.Var]ast.Var) string {
	written := make(ast.Ref, m.at+1)
	for i, term := range ref[:m.at+1] {
		written[i] = term
		if v, ok := term.Value.(ast.Var); ok && names[v] != "" {
			written[i] = ast.NewTerm(names[v])
		}
	}
	word, _ := written[m.at].Value.(ast.String)
	return written.String() + " is read here, and no input has it" + didYouMean(written[:m.at].String(), string(word), m.fields)
}

// didYouMean names the nearest of the names that a document has, if one is near.
func didYouMean(document, name string, names []string) string {
	if near := Nearest(name, names); near != "" {
		return fmt.Sprintf(": did you mean %s.%s?", document, near)
	}
	return ""
}
