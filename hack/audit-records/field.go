package main

import (
	"go/ast"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// object reads a struct and what it holds.
func (r *reader) object(name, path string) *Object {
	t := r.structs[name]
	if t == nil || r.used[name] {
		r.fault("type %s is missing, or is held twice", name)
		return &Object{Path: path}
	}
	r.used[name] = true
	o := &Object{Path: path, Meaning: r.docs[name]}
	if o.Meaning == "" {
		r.fault("type %s has no comment", name)
	}
	for _, f := range t.Fields.List {
		if len(f.Names) != 1 || f.Tag == nil {
			r.fault("type %s: every field has a name and a tag of its own", name)
			continue
		}
		o.Fields = append(o.Fields, r.field(f, name+"."+f.Names[0].Name, path))
	}
	return o
}

func (r *reader) field(f *ast.Field, place, path string) Field {
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		r.fault("%s: its tag: %w", place, err)
	}
	name, rest, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "" || name == "-" {
		r.fault("%s has no name in JSON", place)
	}
	out := Field{Name: name, Optional: rest == "omitempty" || rest == "omitzero", Meaning: meaning(f.Names[0].Name, comment(f.Doc, f.Comment))}
	if out.Meaning == "" {
		r.fault("%s has no comment", place)
	}
	if out.When = "always"; out.Optional {
		out.When = "if not empty"
	}
	r.kind(&out, f.Type, place, strings.TrimPrefix(path+"."+name, "."))
	for _, d := range directives(f.Doc) {
		r.directive(&out, d, place)
	}
	return out
}

// kind says what JSON has for a Go type.
func (r *reader) kind(out *Field, t ast.Expr, place, path string) {
	switch t := t.(type) {
	case *ast.StarExpr:
		r.kind(out, t.X, place, path)
		return
	case *ast.ArrayType:
		out.IsList = true
		r.kind(out, t.Elt, place, path)
		return
	case *ast.SelectorExpr:
		switch t.Sel.Name {
		case "Time":
			out.Kind = Time
			return
		case "RawMessage":
			out.Kind = Any
			return
		}
	case *ast.Ident:
		switch kind := map[string]Kind{"string": Text, "bool": Claim, "int": Integer, "int64": Integer, "uint32": Count, "uint64": Count}[t.Name]; {
		case kind != "":
			out.Kind = kind
			return
		case r.values[t.Name] != nil:
			out.Kind, out.Values = Text, r.values[t.Name]
			return
		default:
			out.Kind, out.Object = Nested, r.object(t.Name, path)
			return
		}
	}
	r.fault("%s is of a type that records do not have", place)
}

// directive applies what a comment says to programs.
func (r *reader) directive(out *Field, d directive, place string) {
	switch d.name {
	case "when":
		out.When = d.text
	case "values":
		if out.Values = r.values[d.text]; out.Values == nil {
			r.fault("%s: there are no constants %s", place, d.text)
		}
	case "one-of":
		for text := range strings.FieldsSeq(d.text) {
			out.Values = append(out.Values, Value{Text: text})
		}
	case "is":
		if out.Form = d.text; forms[d.text].pattern == "" {
			r.fault("%s: unknown form %s", place, d.text)
		}
	case "min", "max":
		n, err := strconv.ParseUint(d.text, 10, 64)
		if err != nil {
			r.fault("%s: %s %q", place, d.name, d.text)
		}
		if d.name == "min" {
			out.Min = n
		} else {
			out.Max = n
		}
	default:
		r.fault("%s: unknown directive %s", place, d.name)
	}
}

// directive is a line of a comment that is for programs: //record:NAME TEXT. Documentation leaves it out.
type directive struct{ name, text string }

func directives(doc *ast.CommentGroup) (out []directive) {
	if doc == nil {
		return nil
	}
	for _, line := range doc.List {
		if text, ok := strings.CutPrefix(line.Text, "//record:"); ok {
			name, text, _ := strings.Cut(text, " ")
			out = append(out, directive{name, strings.TrimSpace(text)})
		}
	}
	return out
}

// comment is the text of the first comment that has one, in one line.
func comment(groups ...*ast.CommentGroup) string {
	for _, g := range slices.Backward(groups) {
		if text := strings.Join(strings.Fields(g.Text()), " "); text != "" {
			return text
		}
	}
	return ""
}

// meaning is a comment without the name that Go has it begin with.
func meaning(name, text string) string {
	if rest, ok := strings.CutPrefix(text, name+" "); ok {
		text = rest
		for _, verb := range []string{"is ", "are "} {
			text = strings.TrimPrefix(text, verb)
		}
	}
	if text == "" {
		return ""
	}
	return strings.TrimSuffix(strings.ToUpper(text[:1])+text[1:], ".")
}
