package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns s with every rune that a terminal could act on, and every line break, written as <U+001B>,
// and every byte that is no UTF-8 as <0xFF>. Backslashes stay as they are: pipe names are full of them.
func Line(s string) string { return replace(s, false) }

// Text is Line for text of several lines: newlines and tabs stay.
func Text(s string) string { return replace(s, true) }

func replace(s string, multiline bool) string {
	if isInert(s) {
		return s
	}
	var b strings.Builder
	for i, width := 0, 0; i < len(s); i += width {
		var r rune
		r, width = utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && width <= 1:
			fmt.Fprintf(&b, "<0x%02X>", s[i])
		case multiline && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case IsInert(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

func isInert(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// IsInert says that r prints as itself and moves nothing: no control, format, bidirectional or
// private rune, no blank but the space, and no combining mark, which would change its neighbour.
func IsInert(r rune) bool {
	return unicode.IsPrint(r) && !unicode.Is(unicode.M, r)
}
