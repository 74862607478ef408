package jsonscan

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of objects and arrays. A Pod with its managedFields stays below 20;
// the recursion that reads a text needs a bound that an attacker cannot move.
const MaxDepth = 128

// Reader walks one JSON text. Its first error stays: after it, every call returns the zero value.
// A caller asks for values in the order of the text, and must take or skip each value that it is offered.
type Reader struct {
	data  []byte
	pos   int
	depth int
	deep  int // how deep it may be
	err   error
	mark  func(key []byte, value byte, element bool) bool
	// marked is true once mark has said yes to any key.
	marked    bool
	allowance *Allowance
}

// NewReader reads data, which must be UTF-8 and must not change while the Reader is used.
func NewReader(data []byte) *Reader {
	r := &Reader{data: data, deep: MaxDepth}
	if !utf8.Valid(data) {
		r.err = errors.New("text is not valid UTF-8")
	}
	return r
}

// Mark has every key of the text, at any depth and also in skipped values, shown to f in its decoded form, with the first
// byte of its value. For a skipped array that is a value, f is asked again with each element's first byte, and element is true.
func (r *Reader) Mark(f func(key []byte, value byte, element bool) bool) { r.mark = f }

// AllowDepth lets a text be as deep as an API server stores it, and somewhat deeper.
func (r *Reader) AllowDepth() { r.deep = storedDepth }

// storedDepth is more than the 10,000 levels to which encoding/json reads what is stored.
const storedDepth = 20_000

// Marked reports whether the function given to Mark said yes to any key so far.
func (r *Reader) Marked() bool { return r.marked }

// Err is the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Failf records an error at the present position, unless there is one already.
func (r *Reader) Failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("byte %d: %w", r.pos, fmt.Errorf(format, args...))
	}
}

// End requires that nothing but white space is left.
func (r *Reader) End() {
	if c := r.peek(); r.err == nil && c != 0 {
		r.Failf("%s after the end of the text", describe(c))
	}
	if r.err == nil && r.pos < len(r.data) { // a NUL byte looks like the end to peek
		r.Failf("NUL byte after the end of the text")
	}
}

// peek skips white space and returns the next byte without taking it; 0 at the end and after an error.
func (r *Reader) peek() byte {
	if r.err != nil {
		return 0
	}
	for r.pos < len(r.data) {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\r', '\n':
			r.pos++
		default:
			return c
		}
	}
	return 0
}

func (r *Reader) take(c byte) bool {
	if got := r.peek(); got != c || r.err != nil {
		r.Failf("%s where %q is expected", describe(got), c)
		return false
	}
	r.pos++
	return true
}

func (r *Reader) enter(c byte) bool {
	if !r.take(c) {
		return false
	}
	if r.depth++; r.depth > r.deep {
		r.Failf("more than %d levels of nesting", r.deep)
		return false
	}
	return true
}

func describe(c byte) string {
	switch c {
	case 0:
		return "end of text"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	}
	return fmt.Sprintf("%q", c)
}
