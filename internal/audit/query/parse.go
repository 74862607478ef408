package query

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// maxTerms bounds what a filter costs for each record.
const maxTerms = 200

// Parse reads a filter: terms with blanks between them, each FIELD=VALUE or FIELD!=VALUE. A value with blanks stands in double
// quotes, in which "" is one quote; backslashes are themselves, since paths are full of them. An error is a *SyntaxError.
func (f *Filter) Parse(text string, now time.Time) error {
	for i, count := 0, 1; ; count++ {
		for i < len(text) && isBlank(text[i]) {
			i++
		}
		switch {
		case i == len(text):
			return nil
		case count > maxTerms:
			return fault(text, i, "more than %d terms", maxTerms)
		}
		begin := i
		for i < len(text) && (text[i] >= 'a' && text[i] <= 'z') {
			i++
		}
		key := text[begin:i]
		not := strings.HasPrefix(text[i:], "!=")
		switch {
		case key == "":
			return fault(text, begin, "the name of a field is missing: write namespace=kube-system")
		case not:
			i += 2
		case i < len(text) && text[i] == '=':
			i++
		default:
			return fault(text, i, "= or != is missing after %s", key)
		}
		if i < len(text) && text[i] == '=' {
			return fault(text, i, "one = is enough: a value that begins with one stands in quotes")
		}
		at := i
		value, end, err := word(text, i)
		if err != nil {
			return err
		}
		if not {
			err = f.Exclude(key, value)
		} else {
			err = f.Want(key, value, now)
		}
		if err != nil {
			return moved(err, text, key, begin, at)
		}
		i = end
	}
}

// word reads a value from text[at:] and returns where it ends.
func word(text string, at int) (value string, end int, err error) {
	if at == len(text) || text[at] != '"' {
		for end = at; end < len(text) && !isBlank(text[end]); end++ {
			if text[end] == '"' {
				return "", 0, fault(text, end, "a quote within a value: put the whole value in quotes, and write \"\" for one")
			}
		}
		return text[at:end], end, nil
	}
	var b strings.Builder
	for i := at + 1; i < len(text); i++ {
		switch {
		case text[i] != '"':
			b.WriteByte(text[i])
		case i+1 < len(text) && text[i+1] == '"':
			b.WriteByte('"')
			i++
		case i+1 < len(text) && !isBlank(text[i+1]):
			return "", 0, fault(text, i+1, "a blank is missing after the quote")
		default:
			return b.String(), i + 1, nil
		}
	}
	return "", 0, fault(text, at, "this quote is not closed")
}

// moved puts the place of a fault within a value into the whole text.
func moved(err error, text, key string, begin, at int) error {
	var s *SyntaxError
	if !errors.As(err, &s) {
		return err
	}
	if !slices.Contains(Keys(), key) { // the field is what is wrong
		return fault(text, begin, "%s", s.Problem)
	}
	if at < len(text) && text[at] == '"' {
		at++
	}
	return &SyntaxError{text, len([]rune(text[:at])) + s.Column, s.Problem}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }
