package apiserver

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/pipeguard/pipeguard/internal/policy"
)

var (
	unknownField = regexp.MustCompile(`^unknown field "(.+)"$`)
	index        = regexp.MustCompile(`\[\d+\]`)
)

// withRemedy adds to what is wrong with a field which one may have been meant. into is the object that was read.
func withRemedy(into any, fault string) string {
	m := unknownField.FindStringSubmatch(fault)
	if m == nil {
		return fault
	}
	path := strings.Split(index.ReplaceAllString(m[1], ""), ".")
	if near := policy.Nearest(path[len(path)-1], fieldsAt(reflect.TypeOf(into), path[:len(path)-1])); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", fault, near)
	}
	return fault
}

// fieldsAt are the fields that the object at a path can have; none if the path leads nowhere.
func fieldsAt(t reflect.Type, path []string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Map && len(path) > 0:
		return fieldsAt(t.Elem(), path[1:])
	case t.Kind() != reflect.Struct:
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" || name == "-":
		case len(path) > 0 && path[0] == name:
			return fieldsAt(f.Type, path[1:])
		default:
			names = append(names, name)
		}
	}
	if len(path) > 0 {
		return nil
	}
	return names
}
