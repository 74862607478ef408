package policyset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
)

const (
	// codeTest is the code of the problem that a test makes.
	codeTest = "test"
	// maxMessage bounds the message of one problem; a status has up to 50 of them.
	maxMessage = 1024
)

// ProblemsOf sorts an error of Assemble or Activate by the PolicyModule it is about. What is about no module, the base
// policy or the checks for instance, is in others.
func ProblemsOf(err error) (byModule map[string][]v1alpha1.Problem, others []string) {
	byModule = map[string][]v1alpha1.Problem{}
	add := func(name string, p v1alpha1.Problem, full string) {
		object, file, ok := SplitFileName(name)
		if !ok {
			others = append(others, Clip(full, maxMessage))
			return
		}
		p.File, p.Message = file, Clip(p.Message, maxMessage)
		byModule[object] = append(byModule[object], p)
	}
	for _, e := range Leaves(err) {
		if problems, ok := errors.AsType[*policy.ProblemsError](e); ok {
			for _, p := range problems.Problems {
				add(p.File, v1alpha1.Problem{Line: int32(p.Line), Column: int32(p.Col), Code: p.Code, Message: p.Message}, p.String()) //nolint:gosec // a file has at most 256 KiB
			}
			continue
		}
		if tests, ok := errors.AsType[*policy.TestsError](e); ok {
			for _, r := range tests.Failed {
				text := fmt.Sprintf("%s.%s: %s", r.Package, r.Name, r.Message)
				add(r.File, v1alpha1.Problem{Line: int32(r.Line), Code: codeTest, Message: text}, fmt.Sprintf("%s:%d: test %s", r.File, r.Line, text)) //nolint:gosec // a file has at most 256 KiB
			}
			continue
		}
		if object, ok := errors.AsType[*ObjectError](e); ok && object.Kind == KindPolicyModule {
			byModule[object.Name] = append(byModule[object.Name], v1alpha1.Problem{Code: "object", Message: Clip(object.Err.Error(), maxMessage)})
			continue
		}
		others = append(others, Clip(e.Error(), maxMessage))
	}
	return byModule, others
}

// Leaves takes joined errors apart.
func Leaves(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // what is joined, not what is wrapped
	if !ok {
		if err == nil {
			return nil
		}
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, Leaves(e)...)
	}
	return out
}

// Clip cuts a text to at most n bytes, between two characters.
func Clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	const more = " …"
	return strings.ToValidUTF8(s[:n-len(more)], "") + more
}
