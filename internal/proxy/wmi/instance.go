package wmi

import (
	"cmp"
	"fmt"
	"strconv"
)

// Has reports whether a property was read and has a value.
func (i Instance) Has(name string) bool { return i.Properties[name] != nil }

// Text returns a property that is text. One that is missing, has no value or is of another type is an error.
func (i Instance) Text(name string) (string, error) { return property[string](i, name, "text") }

// Bool returns a property that is true or false. One that is missing, has no value or is of another type is an error.
func (i Instance) Bool(name string) (bool, error) { return property[bool](i, name, "true or false") }

// Uint returns a property that is a whole number from 0 to 2^64-1. Numbers of 64 bits come from WMI as decimal text.
// One that is missing, has no value, is of another type or is out of that range is an error.
func (i Instance) Uint(name string) (uint64, error) {
	value, err := i.value(name)
	if err != nil {
		return 0, err
	}
	switch v := value.(type) {
	case uint64:
		return v, nil
	case int64:
		if v >= 0 {
			return uint64(v), nil
		}
		return 0, i.fault(name, fmt.Sprintf("%d is negative", v))
	case string:
		number, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			return 0, i.fault(name, fmt.Sprintf("%.40q is not a number from 0 to 2^64-1", v))
		}
		return number, nil
	}
	return 0, i.fault(name, fmt.Sprintf("is a %T, not a number", value))
}

// property returns a property of one type.
func property[T any](i Instance, name, kind string) (T, error) {
	var none T
	value, err := i.value(name)
	if err != nil {
		return none, err
	}
	typed, ok := value.(T)
	if !ok {
		return none, i.fault(name, fmt.Sprintf("is a %T, not %s", value, kind))
	}
	return typed, nil
}

func (i Instance) value(name string) (any, error) {
	value, ok := i.Properties[name]
	switch {
	case !ok:
		return nil, i.fault(name, "was not read")
	case value == nil:
		return nil, i.fault(name, "has no value")
	}
	return value, nil
}

// fault names the object as WMI does: its path begins with its class.
func (i Instance) fault(name, what string) error {
	return fmt.Errorf("%.256q: property %s: %s", cmp.Or(i.Path, "an instance of "+i.Namespace), name, what)
}
