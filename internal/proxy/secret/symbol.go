package secret

import (
	"strings"
	"unicode"
	"unicode/utf16"
)

// symbol is one character of a needle, or one byte of it.
type symbol struct {
	spellings []string // without a number
	code      rune     // the character in Unicode, for escapes that have its number
	bytes     string   // for escapes that have its bytes
	units     []uint16 // for escapes in UTF-16
	letter    byte     // behind a backslash or a backtick, 0 if there is none
}

// letters are the escapes of control characters, in Go, JSON and C.
var letters = map[rune]byte{'\a': 'a', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '\v': 'v', 0: '0'}

// textOf is a needle of characters. Capitals are not told from others: Windows prints names in its own way.
func textOf(secret string) needle {
	var n sequence
	for _, r := range secret {
		s := newSymbol(r, string(r))
		s.spellings = append(s.spellings, string(unicode.ToUpper(r)), string(unicode.ToLower(r)))
		if r == ' ' {
			s.spellings = append(s.spellings, "+", "%2b", "%2B") // in a query, and a query in a query
		}
		if r < ' ' {
			s.spellings = append(s.spellings, "\ufffd") // XML has no such characters
		}
		n = append(n, s)
	}
	return n
}

// bytesOf is a needle of bytes that are not meant to be characters: where they are none, U+FFFD may stand for them.
func bytesOf(secret string) needle {
	var n sequence
	for _, b := range []byte(secret) {
		s := newSymbol(rune(b), string([]byte{b}))
		if b >= 0x80 {
			s.spellings = append(s.spellings, "\ufffd", `\ufffd`, string(rune(b)))
		}
		n = append(n, s)
	}
	return n
}

func base64Symbol(c rune) symbol {
	s := newSymbol(c, string(c))
	switch c {
	case '+':
		s.spellings = append(s.spellings, "-")
	case '/':
		s.spellings = append(s.spellings, "_")
	}
	s.spellings = append(s.spellings, "\n"+string(c), "\r\n"+string(c))
	return s
}

func newSymbol(r rune, bytes string) symbol {
	s := symbol{spellings: []string{bytes, "`" + bytes}, code: r, bytes: bytes, units: utf16.Encode([]rune{r}), letter: letters[r]}
	if s.letter != 0 {
		s.spellings = append(s.spellings, "`"+string(s.letter))
	}
	if r == '\'' || r == '"' || r == '\u2018' || r == '\u2019' || r == '\u201c' || r == '\u201d' { // PowerShell takes all of them for quotes
		s.spellings = append(s.spellings, bytes+bytes)
	}
	return s
}

// ends appends the places at which the character may end that begins at a byte of text.
func (s *symbol) ends(text string, at int, to []int) []int {
	rest := text[at:]
	if s.bytes[0] >= 0x80 && strings.HasSuffix(text[:at], "\ufffd") { // one for several bytes that are no characters
		to = append(to, at)
	}
	for _, spelling := range s.spellings {
		if strings.HasPrefix(rest, spelling) {
			to = append(to, at+len(spelling))
		}
	}
	if rest == "" {
		return to
	}
	switch rest[0] {
	case '\\':
		return s.behindBackslashes(text, at, to)
	case '%':
		return s.percent(text, at, to)
	case '&':
		return s.entity(text, at, to)
	case '_':
		if end := s.cliXML(text, at); end >= 0 {
			return append(to, end)
		}
	}
	return to
}
