package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// Source is the file that defines records, in the project's root.
const Source = "internal/audit/event.go"

// Object is one object of a record.
type Object struct {
	Path    string // in a record: who.process, empty for the record itself
	Meaning string
	Fields  []Field
}

// Field is one field of an object.
type Field struct {
	Name    string
	Meaning string
	// When says in which records the field is.
	When     string
	Optional bool
	Kind     Kind
	IsList   bool // of Kind
	Object   *Object
	Values   []Value // what it may be, nil if that is not bounded
	Form     string  // a key of forms
	Min, Max uint64  // of a number, of the length of a text or a list; 0 if not bounded
}

// Value is one word of a vocabulary.
type Value struct {
	Text    string
	Meaning string // empty if the field says it
	Of      []string
}

// Kind is what JSON has for a field.
type Kind string

// Kinds of fields.
const (
	Text    Kind = "text"
	Time    Kind = "time"
	Integer Kind = "integer"
	Count   Kind = "count" // an integer that is not negative
	Claim   Kind = "true"  // a boolean, or nothing
	Any     Kind = "JSON"
	Nested  Kind = "object"
)

// Read returns the record as the source in the project's root defines it. Every fault is reported at once: a field
// without a comment is one.
func Read(root string) (*Object, error) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(Source)), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read the types of records: %w", err)
	}
	r := &reader{structs: map[string]*ast.StructType{}, docs: map[string]string{}, values: map[string][]Value{}, used: map[string]bool{}}
	r.declarations(file)
	record := r.object("Event", "")
	for name := range r.structs {
		if !r.used[name] {
			r.fault("type %s is part of no record", name)
		}
	}
	if len(r.faults) > 0 {
		return nil, fmt.Errorf("%s: %w", Source, errors.Join(r.faults...))
	}
	return record, nil
}

type reader struct {
	structs map[string]*ast.StructType
	docs    map[string]string  // of types
	values  map[string][]Value // by the type of the constants, or by the name before the value's own
	used    map[string]bool
	faults  []error
}

func (r *reader) fault(format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

// declarations collects types and constants.
func (r *reader) declarations(file *ast.File) {
	for _, decl := range file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				r.docs[s.Name.Name] = meaning(s.Name.Name, comment(group.Doc, s.Doc))
				if t, ok := s.Type.(*ast.StructType); ok {
					r.structs[s.Name.Name] = t
				}
			case *ast.ValueSpec:
				r.constant(s)
			}
		}
	}
}

func (r *reader) constant(s *ast.ValueSpec) {
	name := s.Names[0].Name
	literal, ok := s.Values[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		r.fault("constant %s: %w", name, err)
		return
	}
	v := Value{Text: text, Meaning: meaning(name, comment(s.Doc, s.Comment))}
	if v.Meaning == "" {
		r.fault("constant %s has no comment", name)
	}
	for _, d := range directives(s.Doc) {
		if d.name != "of" {
			r.fault("constant %s: unknown directive %s", name, d.name)
		}
		v.Of = strings.Fields(d.text)
	}
	vocabulary := ""
	if t, ok := s.Type.(*ast.Ident); ok {
		vocabulary = t.Name
	} else { // ResultOK is of the vocabulary Result
		vocabulary = name[:1+strings.IndexFunc(name[1:], func(c rune) bool { return c >= 'A' && c <= 'Z' })]
	}
	r.values[vocabulary] = append(r.values[vocabulary], v)
}
