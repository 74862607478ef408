package admission

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds, in printed bytes, of texts from an object inside a message. A Kubernetes name has at most 253 characters
// and a Windows path usually 260; longer ones are cut, so that a message stays short whatever the object holds.
const (
	maxName = 80
	maxPath = 280
	maxText = 500
)

// quote makes a text that its author chose safe to print: printable ASCII stands for itself, backslashes too, because
// the paths in question consist of them; everything else, quotes included, becomes <U+XXXX>, so that control
// characters, reversed text and look-alike letters are seen. What is longer than limit is cut, and says so.
func quote(s string, limit int) string {
	var b strings.Builder
	b.Grow(min(len(s), limit) + 2)
	b.WriteByte('"')
	cut := escape(&b, s, limit, `"`)
	b.WriteByte('"')
	if cut > 0 {
		fmt.Fprintf(&b, "... (%d bytes more)", cut)
	}
	return b.String()
}

// plain is quote without the quotes, for text of a policy, which may repeat text of an object.
func plain(s string, limit int) string { return plainWithout(s, limit, "") }

// plainWithout is plain, with special characters escaped as well.
func plainWithout(s string, limit int, special string) string {
	var b strings.Builder
	if cut := escape(&b, s, limit, special); cut > 0 {
		b.WriteString("...")
	}
	return b.String()
}

// Plain returns a text as messages quote it, in printable ASCII and at most limit bytes: other characters, such as those that control a terminal, become <U+XXXX>.
func Plain(s string, limit int) string {
	if len(s) <= limit && isPlain(s, "") {
		return s
	}
	return plain(s, limit-len("..."))
}

// fieldText is plain for the path of a field. Quotes are escaped as well: an annotation's key is part of its field.
func fieldText(field string) string { return plainWithout(field, maxPath, `"`) }

// escape returns how many bytes of s it left out.
func escape(b *strings.Builder, s string, limit int, special string) (cut int) {
	if len(s) <= limit && isPlain(s, special) {
		b.WriteString(s)
		return 0
	}
	start := b.Len()
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+n]
		switch {
		case c == utf8.RuneError && n == 1:
			piece = fmt.Sprintf("<0x%02X>", s[i])
		case c < 0x20 || c >= 0x7f || strings.ContainsRune(special, c):
			piece = fmt.Sprintf("<U+%04X>", c)
		}
		if b.Len()-start+len(piece) > limit {
			return len(s) - i
		}
		b.WriteString(piece)
		i += n
	}
	return 0
}

// isPlain reports whether s is printable ASCII without special characters, as almost all texts are.
func isPlain(s, special string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c >= 0x7f || strings.IndexByte(special, c) >= 0 {
			return false
		}
	}
	return true
}

// clip bounds a text that is ASCII already.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit-3] + "..."
}
