package query

import "strings"

// pattern is text to compare with, in which * stands for any characters or none. Case does not matter, as for Windows:
// a caller must not escape a search by writing capitals.
type pattern struct {
	parts []string // in lower case, between the stars
}

func newPattern(text string) pattern { return pattern{strings.Split(strings.ToLower(text), "*")} }

func (p pattern) matches(s string) bool {
	s = strings.ToLower(s)
	first, rest := p.parts[0], p.parts[1:]
	if len(rest) == 0 {
		return s == first
	}
	s, ok := strings.CutPrefix(s, first)
	if !ok {
		return false
	}
	for _, part := range rest[:len(rest)-1] {
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s = s[i+len(part):]
	}
	return strings.HasSuffix(s, rest[len(rest)-1])
}
