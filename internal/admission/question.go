package admission

import (
	"reflect"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// inputQuestion is an input for the engine, which remembers decisions: most pods of a workload are asked about with the same one.
type inputQuestion struct {
	in     *Input
	object ast.Value // nil unless policies read it
}

// Value implements policy.Question.
func (q inputQuestion) Value(read func(field string) bool) ast.Value {
	return q.in.value(q.object, read)
}

// Write implements policy.Question. What it writes is what Value has, which a test holds it to.
func (q inputQuestion) Write(w *policy.Writer, name string) {
	if name == fieldObject && q.object != nil {
		w.Value(q.object)
		return
	}
	v := reflect.ValueOf(q.in).Elem()
	fields := fieldsOf(v.Type())
	if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
		write(w, v.FieldByIndex(fields[i].index))
	}
}

// write ends where the writer is over: an object may have thousands of mounts, each with the names of all policies.
func write(w *policy.Writer, v reflect.Value) {
	if w.IsOver() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		w.String(v.String())
	case reflect.Bool:
		w.Bool(v.Bool())
	case reflect.Struct:
		fields := fieldsOf(v.Type())
		w.Object(len(fields))
		for _, f := range fields {
			w.String(f.name)
			write(w, v.FieldByIndex(f.index))
		}
	case reflect.Map:
		texts, ok := v.Interface().(map[string]string)
		if !ok {
			panic(notConvertible(v))
		}
		w.Object(len(texts))
		for _, key := range sortedKeys(texts) {
			w.String(key)
			w.String(texts[key])
		}
	case reflect.Slice:
		w.Array(v.Len())
		for i := 0; i < v.Len() && !w.IsOver(); i++ {
			write(w, v.Index(i))
		}
	case reflect.Pointer:
		if v.IsNil() {
			w.Null()
			return
		}
		write(w, v.Elem())
	default:
		panic(notConvertible(v))
	}
}
