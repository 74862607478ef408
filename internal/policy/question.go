package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Question is an input of which the value is made only if no decision about it is remembered.
type Question interface {
	// Value makes the input, with the fields that modules read at least.
	Value(read func(field string) bool) ast.Value
	// Write writes what a field has in that value, and nothing if it lacks the field.
	Write(w *Writer, field string)
}

// maxRememberedInput bounds the values that are read of an input, in bytes: a driver with six pipes has about 5 KB. Larger inputs are evaluated each time.
const maxRememberedInput = 32 << 10

// Writer writes values so that no two have the same text, nor does a text begin with another: a kind, how many bytes or members there are, and these.
type Writer struct {
	text   []byte
	isOver bool // it is too long, or a value has no such text
}

const (
	kindAbsent byte = iota
	kindNull
	kindFalse
	kindTrue
	kindNumber
	kindString
	kindArray
	kindObject
	kindSet
)

// Null writes null.
func (w *Writer) Null() { w.tag(kindNull, 0) }

// Bool writes a boolean.
func (w *Writer) Bool(b bool) {
	if b {
		w.tag(kindTrue, 0)
	} else {
		w.tag(kindFalse, 0)
	}
}

// String writes a text.
func (w *Writer) String(s string) { w.string(kindString, s) }

// Array begins an array; its n elements follow.
func (w *Writer) Array(n int) { w.tag(kindArray, n) }

// Object begins an object; the names of its n members follow in the order of their bytes, each with its value.
func (w *Writer) Object(n int) { w.tag(kindObject, n) }

// Value writes a value of OPA.
func (w *Writer) Value(v ast.Value) {
	switch v := v.(type) {
	case ast.Null:
		w.Null()
	case ast.Boolean:
		w.Bool(bool(v))
	case ast.Number:
		w.string(kindNumber, string(v))
	case ast.String:
		w.String(string(v))
	case *ast.Array:
		w.Array(v.Len())
		v.Until(w.term)
	case ast.Object: // its keys are sorted
		w.Object(v.Len())
		v.Until(func(key, value *ast.Term) bool { return w.term(key) || w.term(value) })
	case ast.Set: // sorted as well
		w.tag(kindSet, v.Len())
		v.Until(w.term)
	default:
		w.isOver = true
	}
}

// term writes a part of a value, and reports whether that ended the writing.
func (w *Writer) term(t *ast.Term) (isOver bool) {
	if !w.isOver {
		w.Value(t.Value)
	}
	return w.isOver
}

func (w *Writer) tag(kind byte, n int) {
	if w.isOver = w.isOver || len(w.text) > maxRememberedInput; !w.isOver {
		w.text = binary.AppendUvarint(append(w.text, kind), uint64(n)) //nolint:gosec // a length
	}
}

func (w *Writer) string(kind byte, s string) {
	if w.isOver = w.isOver || len(w.text)+len(s) > maxRememberedInput; !w.isOver {
		w.tag(kind, len(s))
		w.text = append(w.text, s...)
	}
}

var writers sync.Pool // of *Writer

// fingerprint hashes the fields of a question's input. It returns false for one that is too large, or is no object.
func (f *fields) fingerprint(q Question) (out fingerprint, ok bool) {
	w, _ := writers.Get().(*Writer)
	if w == nil {
		w = new(Writer)
	}
	defer writers.Put(w)
	w.text, w.isOver = w.text[:0], false
	for _, name := range f.names {
		if w.isOver {
			break
		}
		before := len(w.text)
		if q.Write(w, name); len(w.text) == before {
			w.tag(kindAbsent, 0) // unlike null
		}
	}
	if w.isOver {
		return out, false
	}
	return sha256.Sum256(w.text), true
}

// IsOver reports that nothing counts any more that is written: there is too much, or a value without such a text. What is written need not be gone through then.
func (w *Writer) IsOver() bool { return w.isOver }

// Equal reports whether the same was written to both.
func (w *Writer) Equal(other *Writer) bool {
	return w.isOver == other.isOver && bytes.Equal(w.text, other.text)
}
