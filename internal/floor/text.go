package floor

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// quote is a string literal of CEL. What is not printable ASCII is escaped.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case ' ' <= r && r <= '~':
			b.WriteRune(r)
		default: // bytes that are not UTF-8 are U+FFFD, as in every text that the API server stores
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[size:]
	}
	b.WriteByte('\'')
	return b.String()
}

// list is a list of string literals, of type dyn: literals of CEL must be of one type, and lists of different lengths stand in one mapping.
func list(items []string) string {
	quoted := make([]string, len(items))
	for i, s := range items {
		quoted[i] = quote(s)
	}
	return "dyn([" + strings.Join(quoted, ", ") + "])"
}

// pattern is a regular expression as a raw string literal. None of those that are made here has an apostrophe: names with one are not put into a pattern.
func pattern(re string) string { return "r'" + re + "'" }

// bind gives a value a name within an expression.
func bind(name, value, expression string) string {
	return "[" + value + "].exists(" + name + ", " + expression + ")"
}

// matchesName says whether a name is among names that are exact, or begins with one of the beginnings.
func matchesName(name string, patterns []string) string {
	exact, beginnings := cut(patterns)
	return fmt.Sprintf("(%s in %s || %s.exists(x, %s.startsWith(x)))", name, list(exact), list(beginnings), name)
}
