package wmi

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// parameter is a value that argument has returned.
type parameter struct {
	name  string
	value any
}

// Format writes the method alone, under any verb: the parameters may hold a password.
func (c Call) Format(state fmt.State, _ rune) { _, _ = fmt.Fprint(state, "call "+c.what()) }

// MarshalJSON writes the method alone, for loggers that encode what they are given.
func (c Call) MarshalJSON() ([]byte, error) { return json.Marshal("call " + c.what()) }

func (c Call) what() string { return c.Class + "." + c.Method }

func (c Call) hasSecret() bool {
	for _, value := range c.In {
		if _, ok := value.(Secret); ok {
			return true
		}
	}
	return false
}

// check returns the parameters in the order of their names. Its errors name parameters and never repeat values.
func (c Call) check() ([]parameter, error) {
	errs := []error{checkNamespace(c.Namespace), checkName("class", c.Class), checkName("method", c.Method)}
	if c.Path != "" {
		errs = append(errs, checkPath(c.Path))
	}
	var in []parameter
	for name, value := range c.In {
		errs = append(errs, checkName("parameter", name))
		if value == nil {
			continue
		}
		converted, err := argument(value)
		if err != nil {
			errs = append(errs, fmt.Errorf("parameter %.64q: %w", name, err))
		}
		in = append(in, parameter{name, converted})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	slices.SortFunc(in, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return in, nil
}

// result splits what a method has returned. A method that says nothing of its outcome is an error: it must not look like success.
func result(out map[string]any) (Result, error) {
	const name = "ReturnValue"
	value := out[name]
	delete(out, name)
	switch v := value.(type) {
	case int64:
		if v >= math.MinInt32 && v <= math.MaxUint32 {
			return Result{Return: uint32(v), Out: out}, nil
		}
	case uint64:
		if v <= math.MaxUint32 {
			return Result{Return: uint32(v), Out: out}, nil
		}
	}
	return Result{}, fmt.Errorf("the method has returned a %T for %s", value, name)
}
