package inert

import "strings"

// Faults returns an error as lines, each as Line makes it: one for each fault, as errors.Join and other lists of errors (Unwrap() []error) have them at
// the end of their text, also wrapped. What stands before a list is the beginning of its first line. A line break in the text of a fault
// begins no line.
func Faults(err error) []string {
	var list []error
	switch e := err.(type) { //nolint:errorlint // this walks along what errors wrap
	case interface{ Unwrap() []error }:
		list = e.Unwrap()
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			list = []error{inner}
		}
	}
	var lines, texts []string
	for _, inner := range list {
		lines, texts = append(lines, Faults(inner)...), append(texts, inner.Error())
	}
	head, ok := strings.CutSuffix(err.Error(), strings.Join(texts, "\n"))
	if !ok || len(lines) == 0 {
		return []string{Line(err.Error())}
	}
	lines[0] = Line(head) + lines[0]
	return lines
}
