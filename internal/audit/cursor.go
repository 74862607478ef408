package audit

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// cursor reads JSON without blanks. Where a method reports false, the text is none, or one that is left to encoding/json.
type cursor struct {
	in string
	at int // what was read
}

func (c *cursor) skip(b byte) bool {
	if c.at < len(c.in) && c.in[c.at] == b {
		c.at++
		return true
	}
	return false
}

func (c *cursor) has(text string) bool { return strings.HasPrefix(c.in[c.at:], text) }

func (c *cursor) skipWord(word string) bool {
	if !c.has(word) {
		return false
	}
	c.at += len(word)
	return true
}

// mostDigits is how many digits surely fit an int64.
const mostDigits = 18

// number reads a whole number of at most mostDigits digits.
func (c *cursor) number() (n uint64, isNegative, ok bool) {
	isNegative = c.skip('-')
	begin := c.at
	for c.at < len(c.in) && c.in[c.at] >= '0' && c.in[c.at] <= '9' {
		n = 10*n + uint64(c.in[c.at]-'0')
		c.at++
	}
	digits := c.at - begin
	hasZero := digits > 0 && c.in[begin] == '0' && (digits > 1 || isNegative)
	return n, isNegative, digits > 0 && digits <= mostDigits && !hasZero && !c.isFraction()
}

// isFraction says whether a number goes on.
func (c *cursor) isFraction() bool {
	return c.at < len(c.in) && (c.in[c.at] == '.' || c.in[c.at] == 'e' || c.in[c.at] == 'E')
}

// plain are the characters that stand for themselves in a text: ASCII without controls, quote and backslash.
var plain = func() (is [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// quoted reads a text, and returns it as it stands between its quotes. isPlain says that it is ASCII without escapes.
func (c *cursor) quoted() (raw string, isPlain, ok bool) {
	if !c.skip('"') {
		return "", false, false
	}
	begin, isPlain := c.at, true
	for c.at < len(c.in) {
		switch b := c.in[c.at]; {
		case plain[b]:
		case b == '"':
			raw = c.in[begin:c.at]
			c.at++
			return raw, isPlain, isPlain || utf8.ValidString(raw)
		case b == '\\':
			isPlain = false
			c.at++
		case b < utf8.RuneSelf && b < ' ':
			return "", false, false
		default:
			isPlain = false
		}
		c.at++
	}
	return "", false, false
}

// text reads a text, and returns what it stands for.
func (c *cursor) text() (string, bool) {
	raw, isPlain, ok := c.quoted()
	if !ok || isPlain || strings.IndexByte(raw, '\\') < 0 {
		return raw, ok
	}
	return unescaped(raw)
}

// short are the escapes of one character.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func unescaped(raw string) (string, bool) {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++
		if i == len(raw) {
			return "", false
		}
		if s := short[raw[i]]; s != 0 {
			out = append(out, s)
			continue
		}
		r, ok := unicodeEscape(raw[i:])
		if !ok {
			return "", false
		}
		out = utf8.AppendRune(out, r)
		i += 4
	}
	return string(out), true
}

// unicodeEscape reads uXXXX, but for the halves of a surrogate pair.
func unicodeEscape(raw string) (r rune, ok bool) {
	if len(raw) < 5 || raw[0] != 'u' {
		return 0, false
	}
	for _, b := range []byte(raw[1:5]) {
		switch {
		case b >= '0' && b <= '9':
			r = r<<4 | rune(b-'0')
		case b >= 'a' && b <= 'f':
			r = r<<4 | rune(b-'a'+10)
		case b >= 'A' && b <= 'F':
			r = r<<4 | rune(b-'A'+10)
		default:
			return 0, false
		}
	}
	return r, utf8.ValidRune(r)
}

// Bounds of what value reads: parameters beyond them are left to encoding/json.
const (
	maxValueDepth = 8
	maxValueKeys  = 32 // of one object: each is compared with those before it
)

// value reads any value that checkParams has no complaint about: no name is there twice in an object, and numbers are whole.
func (c *cursor) value(depth int) bool {
	if c.at == len(c.in) || depth > maxValueDepth {
		return false
	}
	switch b := c.in[c.at]; {
	case b == '"':
		_, ok := c.text()
		return ok
	case b == '{':
		return c.object(depth)
	case b == '[':
		return c.array(depth)
	case b == '-' || b >= '0' && b <= '9':
		_, _, ok := c.number()
		return ok
	}
	return c.skipWord("true") || c.skipWord("false") || c.skipWord("null")
}

func (c *cursor) array(depth int) bool {
	c.at++
	if c.skip(']') {
		return true
	}
	for c.value(depth + 1) {
		if !c.skip(',') {
			return c.skip(']')
		}
	}
	return false
}

func (c *cursor) object(depth int) bool {
	c.at++
	if c.skip('}') {
		return true
	}
	var names [maxValueKeys]string
	for n := 0; n < maxValueKeys; n++ {
		name, isPlain, ok := c.quoted()
		if !ok || !isPlain || !c.skip(':') {
			return false
		}
		if slices.Contains(names[:n], name) {
			return false
		}
		names[n] = name
		if !c.value(depth + 1) {
			return false
		}
		if !c.skip(',') {
			return c.skip('}')
		}
	}
	return false
}
