package pipepath

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxPattern bounds a pattern in bytes. A pipe's whole path has at most 256 characters
// (https://learn.microsoft.com/windows/win32/ipc/pipe-names), so that a longer pattern guards nothing.
const maxPattern = 256

// pattern is one guarded name, or the beginning of guarded names.
type pattern struct {
	text    string // folded, without the star
	written string // folded, with the star
	prefix  bool
}

// parsePattern accepts an exact name or a beginning with * behind it, of the characters that the schemas of PipePolicy and of the chart have. A
// blank before the name, or a letter that looks like another, would be a pattern that guards nothing and looks as if it did. A bare * guards every
// pipe: it can only refuse more, and some want to name what they allow and nothing else.
func parsePattern(s string) (pattern, error) {
	name, prefix := strings.CutSuffix(s, "*")
	var fault string
	switch {
	case s == "":
		fault = "is empty"
	case len(s) > maxPattern:
		return pattern{}, fmt.Errorf("pipe pattern %.40q… is longer than %d bytes", s, maxPattern)
	case !utf8.ValidString(s):
		fault = "is not UTF-8"
	case unspeakable(s):
		fault = "has a control character"
	case strings.ContainsAny(name, `\/`):
		fault = `has a separator: write the pipe's name without \\.\pipe\`
	case strings.Contains(name, "*"):
		fault = "has a * that is not at its end"
	case strings.Contains(name, "?"):
		fault = "has a ?, which is no wildcard here"
	case strings.TrimRight(name, ". ") != name:
		fault = "ends in a dot or a space, which no canonical name does"
	case strings.ContainsFunc(name, isForeign):
		at := strings.IndexFunc(name, isForeign)
		r, _ := utf8.DecodeRuneInString(name[at:])
		fault = fmt.Sprintf("has %+q: the names of guarded pipes have ASCII letters, digits, and . _ { } - in them", r)
	default:
		return pattern{text: Fold(name), written: Fold(s), prefix: prefix}, nil
	}
	return pattern{}, fmt.Errorf("pipe pattern %q %s", s, fault)
}

// isForeign says whether a character is in no pattern.
func isForeign(r rune) bool {
	isLetter := 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z'
	return !isLetter && (r < '0' || r > '9') && !strings.ContainsRune("._{}-", r)
}

// parseAll reports every fault at once.
func parseAll[T any](texts []string, parse func(string) (T, error)) ([]T, error) {
	parsed, faults := make([]T, len(texts)), make([]error, len(texts))
	for i, text := range texts {
		parsed[i], faults[i] = parse(text)
	}
	return parsed, errors.Join(faults...)
}

// coversAny reports whether one of the patterns covers the folded name of a pipe, and which does first.
func coversAny(patterns []pattern, name string) (first pattern, ok bool) {
	for _, p := range patterns {
		if p.covers(name) {
			return p, true
		}
	}
	return pattern{}, false
}

// covers reports whether the folded name of a pipe is guarded. An exact pattern covers what is written
// below its pipe as well: pipes have nothing below them, but what a runtime makes of it is its own affair.
func (p pattern) covers(name string) bool {
	rest, ok := strings.CutPrefix(name, p.text)
	return ok && (p.prefix || rest == "" || rest[0] == '\\')
}
