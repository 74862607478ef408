package query

import "strings"

// pattern returns a comparison with text, in which * stands for any characters or none. Case does not matter, as for Windows:
// a caller must not escape a search by writing capitals.
func pattern(text string) func(s string) bool {
	parts := strings.Split(strings.ToLower(text), "*")
	first, rest := parts[0], parts[1:]
	return func(s string) bool {
		s = strings.ToLower(s)
		if len(rest) == 0 {
			return s == first
		}
		s, ok := strings.CutPrefix(s, first)
		for _, part := range rest[:len(rest)-1] {
			var found bool
			_, s, found = strings.Cut(s, part)
			ok = ok && found
		}
		return ok && strings.HasSuffix(s, rest[len(rest)-1])
	}
}
