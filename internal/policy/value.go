package policy

import (
	"errors"
	"fmt"
	"slices"

	"github.com/open-policy-agent/opa/v1/ast"
)

// ToValue converts a Go value, by way of JSON if it must, to the form that Decide takes. Callers who decide often build
// that form themselves.
func ToValue(v any) (ast.Value, error) {
	out, err := ast.InterfaceToValue(v)
	if err != nil {
		return nil, fmt.Errorf("convert input: %w", err)
	}
	return out, nil
}

var (
	errInputSize  = errors.New("the input is too large")
	errInputDepth = errors.New("the input is too deeply nested")
	errInputValue = errors.New("the input holds something that is not data")
	errInputHash  = errors.New("the input has an object whose keys were chosen for their hashes to be equal")
)

const (
	// maxInputDepth bounds the recursion over an input; the API server takes objects of a depth of some hundreds.
	maxInputDepth = 1000
	// maxEqualHashes bounds the keys of an object that have one hash. OPA's hash of texts is known, and what it collects in sets takes time in
	// proportion to the square of those that collide: object.keys of 16,000 labels, which nothing interrupts, 16 s. By chance not even two do.
	maxEqualHashes = 16
	// valueBytes is what a value costs beside its text, and collectionBytes what an array, a set or an object costs more: to compare them takes of
	// the stack, see weight.
	valueBytes, collectionBytes = 16, 32
)

// checkInput refuses an input that is larger than limit bytes. It stops at the limit, so its own cost is bounded.
func checkInput(v ast.Value, limit int) error {
	if v == nil {
		return errInputValue
	}
	m := meter{left: limit}
	m.pair = func(k, e *ast.Term) bool { return m.term(k) || m.term(e) }
	m.term(ast.NewTerm(v))
	return m.err
}

// meter subtracts values from a budget. Its first fault ends it.
type meter struct {
	left, depth int
	err         error
	hashes      []int // of the keys of an object
	// pair measures a member of an object, and reports whether that ended it. It is made once: it is what this would spend its
	// time on.
	pair func(k, e *ast.Term) bool
}

func (m *meter) fault(err error) (isOver bool) {
	m.err = err
	return true
}

// spend takes n bytes and what a value costs.
func (m *meter) spend(n int) (isOver bool) {
	m.left -= n + valueBytes
	return m.left < 0 && m.fault(errInputSize)
}

func (m *meter) term(t *ast.Term) (isOver bool) {
	switch v := t.Value.(type) {
	case ast.String:
		return m.spend(len(v))
	case ast.Number:
		return m.spend(len(v))
	case ast.Null, ast.Boolean:
		return m.spend(0)
	case *ast.Array, ast.Object, ast.Set:
		return m.collection(v)
	}
	return m.fault(errInputValue) // a variable or a reference would make OPA evaluate the input
}

// keys refuses keys that collide. It looks at no more of them than the budget has room for.
func (m *meter) keys(o ast.Object) (isOver bool) {
	if o.Len() <= maxEqualHashes {
		return false
	}
	if o.Len()*valueBytes > m.left {
		return m.fault(errInputSize)
	}
	m.hashes = m.hashes[:0]
	o.Foreach(func(k, _ *ast.Term) { m.hashes = append(m.hashes, k.Hash()) })
	slices.Sort(m.hashes)
	for i := maxEqualHashes; i < len(m.hashes); i++ {
		if m.hashes[i] == m.hashes[i-maxEqualHashes] {
			return m.fault(errInputHash)
		}
	}
	return false
}

func (m *meter) collection(v ast.Value) (isOver bool) {
	if m.depth > maxInputDepth {
		return m.fault(errInputDepth)
	}
	m.depth++
	defer func() { m.depth-- }()
	if m.spend(collectionBytes) {
		return true
	}
	switch v := v.(type) {
	case *ast.Array:
		for i := range v.Len() {
			if m.term(v.Elem(i)) {
				return true
			}
		}
	case ast.Object:
		return m.keys(v) || v.Until(m.pair)
	case ast.Set:
		return v.Until(m.term)
	}
	return false
}
