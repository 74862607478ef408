package apiserver

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
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
	if near := nearest(path[len(path)-1], fieldsAt(reflect.TypeOf(into), path[:len(path)-1])); near != "" {
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

// nearest is the name that differs least: in the case of its letters alone, or in at most a third of them.
func nearest(word string, names []string) string {
	best, least := "", len(word)/3+1
	slices.Sort(names)
	for _, name := range names {
		if d := distance(strings.ToLower(word), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters must be put in, left out or replaced to make one word of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
