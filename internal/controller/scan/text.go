package scan

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds, in bytes, of texts in a report: a message is read by a person, and a thousand of them must fit into one object.
const (
	maxMessage = 1024
	maxField   = 512
	maxShort   = 320 // a kind and a name, of 253 characters at most, and what is between them
)

// inert bounds s and makes it printable ASCII, in the manner of the messages of admission: anything else, such as what
// a terminal would obey, becomes <U+XXXX>. Whoever shows a report need not be careful with it.
func inert(s string, limit int) string {
	if len(s) <= limit && isInert(s) {
		return s
	}
	const dots = "..."
	var b strings.Builder
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		piece := s[i : i+n]
		switch {
		case c == utf8.RuneError && n == 1:
			piece = fmt.Sprintf("<0x%02X>", s[i])
		case c < 0x20 || c >= 0x7f:
			piece = fmt.Sprintf("<U+%04X>", c)
		}
		if b.Len()+len(piece) > limit-len(dots) {
			b.WriteString(dots)
			break
		}
		b.WriteString(piece)
		i += n
	}
	return b.String()
}

func isInert(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
