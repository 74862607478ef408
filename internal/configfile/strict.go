package configfile

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Remedies say, by the type of a struct, what to do about a number in it that is written as 0.
type Remedies map[reflect.Type]string

// CheckText refuses what YAML allows and a file that decides should not have: values that are empty, blank or 0, which would read as if the
// key were not there (a caller whose "user:" a template left empty would be any user, a limit of 0 no bound, an empty bundle none),
// texts with a blank at an end, which would be other paths and names than they look, and fractions, which would be cut off. into is the struct
// that the text was decoded into.
func (s File) CheckText(into any, remedies Remedies) error {
	faults := s.walk(s.root, "")
	if zeros := s.zeros(reflect.ValueOf(into), "", "", remedies); len(zeros) > 0 {
		faults = append(faults, s.Locate(zeros))
	}
	return errors.Join(faults...)
}

// zeros returns the faults of numbers and durations below field that are written as 0. Their zero value stands for one that is not set: what
// a 0 is to mean cannot be told from that, and nothing here has a use for it. Unsigned numbers are no bounds, and their 0 is a value.
func (s File) zeros(v reflect.Value, field, remedy string, remedies Remedies) (faults Faults) {
	switch v.Kind() {
	case reflect.Struct:
		remedy = cmp.Or(remedies[v.Type()], remedy)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				faults = append(faults, s.zeros(v.Field(i), strings.TrimPrefix(field+"."+f.Tag.Get("yaml"), "."), remedy, remedies)...)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			faults = append(faults, s.zeros(v.Index(i), fmt.Sprintf("%s[%d]", field, i), remedy, remedies)...)
		}
	case reflect.Uint, reflect.Uint64, reflect.Int, reflect.Int64:
		switch node := s.exact(field); {
		case node == nil:
		case node.Tag == "!!float":
			return Faults{{field, "is not a whole number"}}
		case v.CanInt() && v.IsZero() && node.Value != "" && node.Tag != "!!null":
			return Faults{{field, "is 0, which is not a valid value: " + cmp.Or(remedy, "leave it out for the default")}}
		}
	}
	return faults
}

// walk returns the faults of a node and of what is in it; field is the node's place in words.
func (s File) walk(node *yaml.Node, field string) (faults []error) {
	add := func(problem string) {
		faults = append(faults, fmt.Errorf("%s:%d:%d: %s: %s", s.name, node.Line, node.Column, field, problem))
	}
	switch {
	case node.Kind == yaml.ScalarNode && field != "" && (strings.TrimSpace(node.Value) == "" || node.Tag == "!!null"):
		add("has no value: give it one or remove it")
	case node.Kind == yaml.ScalarNode && strings.TrimSpace(node.Value) != node.Value:
		add("begins or ends with a blank: remove it")
	case node.Kind == yaml.MappingNode && field != "" && !strings.HasSuffix(field, "]") && len(node.Content) == 0:
		add("is empty, and would read as if it were not there: fill it or remove it")
	}
	for i, child := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			faults = append(faults, s.walk(child, fmt.Sprintf("%s[%d]", field, i))...)
		case node.Kind == yaml.DocumentNode:
			faults = append(faults, s.walk(child, field)...)
		case i%2 == 0: // a key
		case field == "":
			faults = append(faults, s.walk(child, node.Content[i-1].Value)...)
		default:
			faults = append(faults, s.walk(child, field+"."+node.Content[i-1].Value)...)
		}
	}
	return faults
}
