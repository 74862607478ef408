package secret

import (
	"html"
	"strings"
	"unicode"
)

// behindBackslashes knows the escapes of Go, JSON, C and Python. A text that is quoted in a quoted text has more than
// one backslash.
func (s *symbol) behindBackslashes(text string, at int, to []int) []int {
	body := behind(text, at)
	if s.code == '\\' {
		for n := 2; n <= body-at; n *= 2 {
			to = append(to, at+n)
		}
	}
	if body == len(text) {
		return to
	}
	if c := text[body]; s.letter != 0 && c == s.letter || rune(c) == s.code && unicode.IsPunct(s.code) || rune(c) == s.code && unicode.IsSymbol(s.code) {
		to = append(to, body+1)
	}
	if hexAt(text, body+1, 8) == int(s.code) && text[body] == 'U' {
		to = append(to, body+9)
	}
	if hexAt(text, body+1, 2) == int(s.code) && text[body] == 'x' {
		to = append(to, body+3)
	}
	for _, escaped := range []func(string, int) int{s.inUnits, s.inHexBytes, s.inOctalBytes} {
		if end := escaped(text, at); end >= 0 {
			to = append(to, end)
		}
	}
	return to
}

// maxBackslashes are those of a text that was quoted four times over.
const maxBackslashes = 16

// behind returns the first byte that is no backslash, or the last backslash that is looked at.
func behind(text string, at int) int {
	return skip(text[:min(len(text), at+maxBackslashes)], at, `\`)
}

// inUnits matches \u1234, two of them for characters beyond 16 bits.
func (s *symbol) inUnits(text string, at int) int {
	for _, unit := range s.units {
		body := behind(text, at)
		if body == at || body == len(text) || text[body] != 'u' || hexAt(text, body+1, 4) != int(unit) {
			return -1
		}
		at = body + 5
	}
	return at
}

// inHexBytes matches \x12, once for each byte.
func (s *symbol) inHexBytes(text string, at int) int {
	for i := range len(s.bytes) {
		body := behind(text, at)
		if body == at || body == len(text) || text[body] != 'x' || hexAt(text, body+1, 2) != int(s.bytes[i]) {
			return -1
		}
		at = body + 3
	}
	return at
}

// inOctalBytes matches \123, once for each byte.
func (s *symbol) inOctalBytes(text string, at int) int {
	for i := range len(s.bytes) {
		body := behind(text, at)
		if body == at || body+3 > len(text) {
			return -1
		}
		n := 0
		for _, c := range []byte(text[body : body+3]) {
			if c < '0' || c > '7' {
				return -1
			}
			n = n<<3 + int(c-'0')
		}
		if n != int(s.bytes[i]) {
			return -1
		}
		at = body + 3
	}
	return at
}

// percent matches %12, once for each byte, and %2512 if a URL stands in a URL.
func (s *symbol) percent(text string, at int, to []int) []int {
	for i := range len(s.bytes) {
		if !strings.HasPrefix(text[at:], "%") {
			return to
		}
		at++
		for strings.HasPrefix(text[at:], "25") {
			if s.bytes == "%" {
				to = append(to, at+2)
			}
			at += 2
		}
		if hexAt(text, at, 2) != int(s.bytes[i]) {
			return to
		}
		at += 2
	}
	return append(to, at)
}

// entity matches a character reference of HTML and XML, by name or by number. In a text that was escaped twice its ampersand is
// one too.
func (s *symbol) entity(text string, at int, to []int) []int {
	for body := at + 1; ; body += len("amp;") {
		end := body + strings.IndexByte(text[body:min(len(text), body+10)], ';') + 1
		if end > body && html.UnescapeString("&"+text[body:end]) == string(s.code) {
			to = append(to, end)
		}
		if !strings.HasPrefix(text[body:], "amp;") {
			return to
		}
	}
}

// cliXML matches _x1234_, as PowerShell writes what XML cannot hold.
func (s *symbol) cliXML(text string, at int) int {
	for _, unit := range s.units {
		if !strings.HasPrefix(text[at:], "_x") || hexAt(text, at+2, 4) != int(unit) || !strings.HasPrefix(text[at+6:], "_") {
			return -1
		}
		at += 7
	}
	return at
}
