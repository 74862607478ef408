// Package plainjson reads JSON as programs write it: without blanks between values. It reads no more than package encoding/json does, and leaves to that what it does
// not read: a result that is not ok says nothing about the text.
package plainjson

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Cursor reads a text from its beginning on. A method that is not ok may have read a part of the value.
type Cursor struct {
	In string
	At int // how many bytes were read
}

// IsEnd says whether all was read.
func (c *Cursor) IsEnd() bool { return c.At == len(c.In) }

// Skip reads one character, if it comes next.
func (c *Cursor) Skip(b byte) bool {
	if c.At < len(c.In) && c.In[c.At] == b {
		c.At++
		return true
	}
	return false
}

// Has says whether a text comes next.
func (c *Cursor) Has(text string) bool { return strings.HasPrefix(c.In[c.At:], text) }

// Word reads a text, if it comes next.
func (c *Cursor) Word(word string) bool {
	if !c.Has(word) {
		return false
	}
	c.At += len(word)
	return true
}

// mostDigits is how many digits surely fit an int64.
const mostDigits = 18

// Number reads a whole number of at most mostDigits digits.
func (c *Cursor) Number() (n uint64, isNegative, ok bool) {
	isNegative = c.Skip('-')
	begin := c.At
	for c.At < len(c.In) && c.In[c.At] >= '0' && c.In[c.At] <= '9' {
		n = 10*n + uint64(c.In[c.At]-'0')
		c.At++
	}
	digits := c.At - begin
	hasZero := digits > 0 && c.In[begin] == '0' && (digits > 1 || isNegative)
	return n, isNegative, digits > 0 && digits <= mostDigits && !hasZero && !c.isFraction()
}

// isFraction says whether a number goes on.
func (c *Cursor) isFraction() bool {
	return c.At < len(c.In) && (c.In[c.At] == '.' || c.In[c.At] == 'e' || c.In[c.At] == 'E')
}

// plain are the characters that stand for themselves in a text: ASCII without controls, quote and backslash.
var plain = func() (is [256]bool) {
	for c := byte(' '); c <= '~'; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// Quoted reads a text, and returns it as it stands between its quotes. isPlain says that it is ASCII without escapes.
func (c *Cursor) Quoted() (raw string, isPlain, ok bool) {
	if !c.Skip('"') {
		return "", false, false
	}
	in, i := c.In[c.At:], 0
	for i < len(in) && plain[in[i]] {
		i++
	}
	if i < len(in) && in[i] == '"' {
		c.At += i + 1
		return in[:i], true, true
	}
	return c.quotedFrom(i)
}

// quotedFrom is Quoted for a text whose first character that is not plain stands so many bytes ahead.
func (c *Cursor) quotedFrom(i int) (raw string, isPlain, ok bool) {
	in, isASCII := c.In[c.At:], true
	for i < len(in) {
		switch b := in[i]; {
		case plain[b]:
		case b == '"':
			raw = in[:i]
			c.At += i + 1
			return raw, false, isASCII || utf8.ValidString(raw)
		case b == '\\':
			if i++; i < len(in) && in[i] >= utf8.RuneSelf {
				isASCII = false
			}
		case b < ' ':
			return "", false, false
		default:
			isASCII = false
		}
		i++
	}
	return "", false, false
}

// Text reads a text, and returns what it stands for.
func (c *Cursor) Text() (string, bool) {
	raw, isPlain, ok := c.Quoted()
	if !ok || isPlain || strings.IndexByte(raw, '\\') < 0 {
		return raw, ok
	}
	return unescaped(raw)
}

// SkipText reads what Text reads, and does not say what it stands for.
func (c *Cursor) SkipText() bool {
	raw, isPlain, ok := c.Quoted()
	if !ok || isPlain {
		return ok
	}
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			return true
		}
		_, n, ok := escape(raw[i+1:])
		if !ok {
			return false
		}
		raw = raw[i+1+n:]
	}
}

// short are the escapes of one character.
var short = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

func unescaped(raw string) (string, bool) {
	out := make([]byte, 0, len(raw))
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			return string(append(out, raw...)), true
		}
		r, n, ok := escape(raw[i+1:])
		if !ok {
			return "", false
		}
		out = utf8.AppendRune(append(out, raw[:i]...), r)
		raw = raw[i+1+n:]
	}
}

// escape reads what stands behind a backslash, in n bytes.
func escape(raw string) (r rune, n int, ok bool) {
	if raw == "" {
		return 0, 0, false
	}
	if s := short[raw[0]]; s != 0 {
		return rune(s), 1, true
	}
	r, ok = unicodeEscape(raw)
	return r, len("uXXXX"), ok
}

// unicodeEscape reads uXXXX, but for the halves of a surrogate pair.
func unicodeEscape(raw string) (r rune, ok bool) {
	if len(raw) < 5 || raw[0] != 'u' {
		return 0, false
	}
	for _, b := range []byte(raw[1:5]) { // copies nothing
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

// Bounds of what Value reads: what is beyond them is left to encoding/json.
const (
	maxValueDepth = 8
	maxValueKeys  = 32 // of one object: each is compared with those before it
)

// Value reads any value of few levels in which each number is whole and no object has a name twice.
func (c *Cursor) Value() bool { return c.value(0) }

func (c *Cursor) value(depth int) bool {
	if c.At == len(c.In) || depth > maxValueDepth {
		return false
	}
	switch b := c.In[c.At]; {
	case b == '"':
		return c.SkipText()
	case b == '{':
		return c.object(depth)
	case b == '[':
		return c.array(depth)
	case b == '-' || b >= '0' && b <= '9':
		_, _, ok := c.Number()
		return ok
	}
	return c.Word("true") || c.Word("false") || c.Word("null")
}

func (c *Cursor) array(depth int) bool {
	c.At++
	if c.Skip(']') {
		return true
	}
	for c.value(depth + 1) {
		if !c.Skip(',') {
			return c.Skip(']')
		}
	}
	return false
}

func (c *Cursor) object(depth int) bool {
	c.At++
	if c.Skip('}') {
		return true
	}
	var names [maxValueKeys]string
	for n := 0; n < maxValueKeys; n++ {
		name, isPlain, ok := c.Quoted()
		if !ok || !isPlain || !c.Skip(':') {
			return false
		}
		if slices.Contains(names[:n], name) {
			return false
		}
		names[n] = name
		if !c.value(depth + 1) {
			return false
		}
		if !c.Skip(',') {
			return c.Skip('}')
		}
	}
	return false
}
