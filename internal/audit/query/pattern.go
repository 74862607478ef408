package query

import (
	"strings"
	"unicode/utf8"
)

// pattern returns a comparison with text, in which * stands for any characters or none. Case does not matter, as for Windows:
// a caller must not escape a search by writing capitals.
func pattern(text string) func(s string) bool {
	parts := strings.Split(strings.ToLower(text), "*")
	first, rest := parts[0], parts[1:]
	return func(s string) bool {
		if len(rest) == 0 {
			return isLower(s, first)
		}
		s = strings.ToLower(s)
		s, ok := strings.CutPrefix(s, first)
		for _, part := range rest[:len(rest)-1] {
			var found bool
			_, s, found = strings.Cut(s, part)
			ok = ok && found
		}
		return ok && strings.HasSuffix(s, rest[len(rest)-1])
	}
}

// isLower says whether a text is another one in small letters, which most texts differ from in an early character.
func isLower(s, lower string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= utf8.RuneSelf: // whose small letter may have fewer bytes, or be of ASCII
			return strings.ToLower(s) == lower
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		if i == len(lower) || c != lower[i] {
			return false
		}
	}
	return len(s) == len(lower)
}
