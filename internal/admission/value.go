package admission

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// fieldObject is the field that Input has no member for.
const fieldObject = "object"

var (
	keyObject = ast.StringTerm(fieldObject)

	valueTrue      = ast.BooleanTerm(true)
	valueFalse     = ast.BooleanTerm(false)
	valueEmpty     = ast.StringTerm("")
	valuePipe      = ast.StringTerm("pipe")
	valueContainer = ast.StringTerm(typeContainer)
)

type item = [2]*ast.Term

// everyField is for an input as a whole.
func everyField(string) bool { return true }

// value builds the fields of the input that are read, as OPA wants them. Going through JSON instead gives the same value at many times the cost; lists and maps that are
// absent are empty. object, the whole object as the API server sent it, is left out if nil.
func (in *Input) value(object ast.Value, read func(field string) bool) ast.Value {
	c := make(converter, 16)
	for e := range in.entries() {
		if g := e.governing; g != nil {
			c[sharedBy(reflect.ValueOf(g.names))] = g.term
		}
	}
	items := c.items(reflect.ValueOf(in).Elem(), read)
	if object != nil {
		items = append(items, item{keyObject, ast.NewTerm(object)})
	}
	return ast.NewObject(items...)
}

// converter converts the values that an input consists of. What is shared by parts of the input, such as the labels of a Pod, the names of policies and an Access,
// becomes one term, so that OPA, which remembers what it found out about a value, looks at it once.
type converter map[shared]*ast.Term

// shared identifies a map, a slice, or what a pointer leads to.
type shared struct {
	kind    reflect.Kind
	address uintptr
	length  int
}

func sharedBy(v reflect.Value) shared {
	s := shared{kind: v.Kind(), address: v.Pointer()}
	if v.Kind() == reflect.Slice {
		s.length = v.Len()
	}
	return s
}

func (c converter) term(v reflect.Value) *ast.Term {
	switch v.Kind() {
	case reflect.String:
		return text(v.String())
	case reflect.Bool:
		if v.Bool() {
			return valueTrue
		}
		return valueFalse
	case reflect.Struct:
		return ast.ObjectTerm(c.items(v, everyField)...)
	case reflect.Map, reflect.Slice, reflect.Pointer:
		key := sharedBy(v)
		t := c[key]
		if t == nil {
			t = c.reference(v)
			c[key] = t
		}
		return t
	}
	panic(notConvertible(v))
}

func (c converter) reference(v reflect.Value) *ast.Term {
	switch v.Kind() {
	case reflect.Map:
		texts, ok := v.Interface().(map[string]string)
		if !ok {
			panic(notConvertible(v))
		}
		items := make([]item, 0, len(texts))
		for key, value := range texts {
			items = append(items, item{text(key), text(value)})
		}
		return ast.ObjectTerm(items...)
	case reflect.Slice:
		terms := make([]*ast.Term, v.Len())
		for i := range terms {
			terms[i] = c.term(v.Index(i))
		}
		return ast.NewTerm(ast.NewArray(terms...))
	}
	if v.IsNil() {
		return ast.NullTerm()
	}
	return c.term(v.Elem())
}

// notConvertible is a type that no part of an Input has: tests convert each of them.
func notConvertible(v reflect.Value) error { return fmt.Errorf("convert an input: a %s", v.Type()) }

// items are the members of a struct's object that are read.
func (c converter) items(v reflect.Value, read func(field string) bool) []item {
	fields := fieldsOf(v.Type())
	items := make([]item, 0, len(fields)+1)
	for _, f := range fields {
		if read(f.name) {
			items = append(items, item{f.key, c.term(v.FieldByIndex(f.index))})
		}
	}
	return items
}

// field is a field of a struct under its name in JSON. Its key is made once: a term is never changed after it was built.
type field struct {
	name  string
	key   *ast.Term
	index []int
}

var knownFields sync.Map // of []field, by the reflect.Type of the struct

// fieldsOf are the fields that encoding/json knows of a struct, those of embedded structs among them, by name.
func fieldsOf(t reflect.Type) []field {
	known, _ := knownFields.Load(t)
	if fields, ok := known.([]field); ok {
		return fields
	}
	var fields []field
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("json"); name != "" {
			fields = append(fields, field{name, ast.StringTerm(name), f.Index})
		}
	}
	slices.SortFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	knownFields.Store(t, fields)
	return fields
}

// text makes a term, or takes one of those that almost every input has.
func text(s string) *ast.Term {
	switch s {
	case "":
		return valueEmpty
	case "pipe":
		return valuePipe
	case typeContainer:
		return valueContainer
	}
	return ast.StringTerm(s)
}

// namesTerm is a list of names.
func namesTerm(names []string) *ast.Term { return converter{}.term(reflect.ValueOf(names)) }
