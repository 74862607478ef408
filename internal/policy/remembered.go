package policy

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The pods of one workload differ in their names and little else, and a controller whose pod is refused asks again and again. Where two inputs have the same values in
// all fields that the modules read, the decision is the same: beside the input, a rule reads data, which belongs to the snapshot, and no builtin that policies may call
// has another source (see allowedBuiltins). So a decision is made by OPA once, and remembered under a hash of these values.

// remembered holds the decisions of one snapshot that were made last, by the fingerprints of their inputs. What it holds is bounded however many
// different objects are made: when the newer half is full, the older one is forgotten.
type remembered struct {
	fields fields
	most   int // decisions in each half

	mu           sync.Mutex // guards the rest
	newer, older map[fingerprint]*Decision
}

// fingerprint is SHA-256 of what modules read of an input.
type fingerprint [sha256.Size]byte

const (
	// maxRememberedInput bounds the values that are read of an input, in bytes: a driver with six pipes has about 5 KB. Larger inputs are evaluated each time.
	maxRememberedInput = 32 << 10
	// maxRememberedFindings and maxRememberedText, in bytes, bound one decision.
	maxRememberedFindings = 32
	maxRememberedText     = 4 << 10
)

// newRemembered returns nil, which remembers nothing, if it is not to hold any decision or modules read all of the input.
func newRemembered(read fields, most int) *remembered {
	if most == 0 || read.all {
		return nil
	}
	return &remembered{fields: read, most: most/2 + 1, newer: map[fingerprint]*Decision{}}
}

// find returns what an input is remembered by, and the decision if there is one. The place is nil if the decision has to be made each time.
func (r *remembered) find(input ast.Value) (place *fingerprint, d Decision, ok bool) {
	if r == nil {
		return nil, Decision{}, false
	}
	print, isKnown := r.fields.fingerprint(input)
	if !isKnown {
		return nil, Decision{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.newer[print]
	if found == nil {
		if found = r.older[print]; found == nil {
			return &print, Decision{}, false
		}
		r.add(print, found) // what is asked for again stays
	}
	return &print, found.clone(), true
}

// remember keeps a decision that was made from an input of this fingerprint, unless it is large, or advice is missing from it: that may be for want of time.
func (r *remembered) remember(place *fingerprint, d Decision) {
	if r == nil || place == nil || d.lacksAdvice() || d.isLarge() {
		return
	}
	own := d.clone()
	for i := range own.Findings { // a text may be a part of a longer one, which it would keep
		f := &own.Findings[i]
		*f = Finding{strings.Clone(f.Code), Effect(strings.Clone(string(f.Effect))), strings.Clone(f.Field), strings.Clone(f.Message)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(*place, &own)
}

// add needs mu.
func (r *remembered) add(at fingerprint, d *Decision) {
	if len(r.newer) >= r.most {
		r.newer, r.older = make(map[fingerprint]*Decision, r.most), r.newer
	}
	r.newer[at] = d
}

// lacksAdvice reports whether advice is missing from a decision.
func (d *Decision) lacksAdvice() bool {
	return slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Code == CodeAdviceFailed })
}

func (d *Decision) isLarge() bool {
	text := 0
	for _, f := range d.Findings {
		text += len(f.Code) + len(f.Effect) + len(f.Field) + len(f.Message)
	}
	return len(d.Findings) > maxRememberedFindings || len(d.Untold) > 0 || text > maxRememberedText
}

// clone returns a decision that shares no list with d.
func (d *Decision) clone() Decision {
	out := *d
	out.Findings, out.Untold = slices.Clone(d.Findings), slices.Clone(d.Untold)
	return out
}

// fingerprint hashes the fields of an input. It returns false for one that is too large, or is no object.
func (f *fields) fingerprint(input ast.Value) (out fingerprint, ok bool) {
	object, ok := input.(ast.Object)
	if !ok {
		return out, false
	}
	w, _ := writers.Get().(*writer)
	if w == nil {
		w = new(writer)
	}
	defer writers.Put(w)
	w.text, w.isOver = w.text[:0], false
	for _, name := range f.names {
		value := object.Get(name)
		if value == nil { // unlike null
			w.tag(kindAbsent, 0)
			continue
		}
		if w.value(value.Value); w.isOver {
			return out, false
		}
	}
	return sha256.Sum256(w.text), true
}

var writers sync.Pool // of *writer

// writer writes values so that no two have the same text, nor does a text begin with another: a kind, how many bytes or members there are, and these.
type writer struct {
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

func (w *writer) tag(kind byte, n int) {
	w.text = binary.AppendUvarint(append(w.text, kind), uint64(n)) //nolint:gosec // a length
}

func (w *writer) value(v ast.Value) {
	switch v := v.(type) {
	case ast.Null:
		w.tag(kindNull, 0)
	case ast.Boolean:
		kind := kindFalse
		if v {
			kind = kindTrue
		}
		w.tag(kind, 0)
	case ast.Number:
		w.string(kindNumber, string(v))
	case ast.String:
		w.string(kindString, string(v))
	case *ast.Array:
		w.tag(kindArray, v.Len())
		v.Until(w.term)
	case ast.Object: // its keys are sorted
		w.tag(kindObject, v.Len())
		v.Until(func(key, value *ast.Term) bool { return w.term(key) || w.term(value) })
	case ast.Set: // sorted as well
		w.tag(kindSet, v.Len())
		v.Until(w.term)
	default:
		w.isOver = true
	}
}

func (w *writer) string(kind byte, s string) {
	if len(w.text)+len(s) > maxRememberedInput {
		w.isOver = true
		return
	}
	w.tag(kind, len(s))
	w.text = append(w.text, s...)
}

// term writes a part of a value, and reports whether that ended the writing.
func (w *writer) term(t *ast.Term) (isOver bool) {
	if !w.isOver {
		w.value(t.Value)
	}
	w.isOver = w.isOver || len(w.text) > maxRememberedInput
	return w.isOver
}
