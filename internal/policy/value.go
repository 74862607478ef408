package policy

import (
	"errors"
	"fmt"

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
)

const (
	// maxInputDepth bounds the recursion over an input; the API server takes objects of a depth of some hundreds.
	maxInputDepth = 1000
	// valueBytes is what a value costs beside its text.
	valueBytes = 16
)

// checkInput refuses an input that is larger than limit bytes. It stops at the limit, so its own cost is bounded.
func checkInput(v ast.Value, limit int) error {
	if v == nil {
		return errInputValue
	}
	_, err := measure(v, limit, 0)
	return err
}

// measure returns what is left of a budget after v.
func measure(v ast.Value, left, depth int) (int, error) {
	if depth > maxInputDepth {
		return 0, errInputDepth
	}
	left -= valueBytes
	var err error
	switch v := v.(type) {
	case *ast.Array:
		for i := 0; i < v.Len() && err == nil; i++ {
			left, err = measureTerm(v.Elem(i), left, depth)
		}
	case ast.Object:
		// Until, and not Iter: its callback is what this spends its time on, and here it makes no error values.
		v.Until(func(k, e *ast.Term) bool {
			if left, err = measureTerm(k, left, depth); err == nil {
				left, err = measureTerm(e, left, depth)
			}
			return err != nil
		})
	case ast.Set:
		v.Until(func(e *ast.Term) bool {
			left, err = measureTerm(e, left, depth)
			return err != nil
		})
	default:
		return measureTerm(ast.NewTerm(v), left+valueBytes, depth)
	}
	if err == nil && left < 0 {
		err = errInputSize
	}
	return left, err
}

// measureTerm is measure without a call for what holds no other values, which most of an input is.
func measureTerm(t *ast.Term, left, depth int) (int, error) {
	switch v := t.Value.(type) {
	case ast.String:
		left -= len(v) + valueBytes
	case ast.Number:
		left -= len(v) + valueBytes
	case ast.Null, ast.Boolean:
		left -= valueBytes
	case *ast.Array, ast.Object, ast.Set:
		return measure(v, left, depth+1)
	default: // a variable or a reference would make OPA evaluate the input
		return 0, errInputValue
	}
	if left < 0 {
		return 0, errInputSize
	}
	return left, nil
}
