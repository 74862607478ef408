package wmi

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxText bounds a text that goes to a method, in bytes.
const maxText = 32 << 10

// argument takes a value that a method may be given as one of bool, string, int64 and uint64. Its errors do not repeat the value.
func argument(value any) (any, error) {
	switch v := value.(type) {
	case bool:
		return v, nil
	case string:
		if len(v) > maxText {
			return nil, fmt.Errorf("a text of %d bytes is longer than %d", len(v), maxText)
		}
		if !utf8.ValidString(v) || strings.ContainsRune(v, 0) {
			return nil, errors.New("the text is not valid UTF-8 or has a NUL in it")
		}
		return v, nil
	case Secret:
		return argument(string(v))
	case int, int8, int16, int32, int64:
		return reflect.ValueOf(v).Int(), nil
	case uint, uint8, uint16, uint32, uint64:
		return reflect.ValueOf(v).Uint(), nil
	}
	return nil, fmt.Errorf("a value of type %T is not one that a method takes", value)
}

// cimType is the type of a property or parameter.
// https://learn.microsoft.com/windows/win32/api/wbemcli/ne-wbemcli-cimtype_enumeration
type cimType int32

const (
	cimUint32 cimType = 19
	cimArray  cimType = 0x2000 // added to the type of the elements
)

// typed converts what argument has returned to a parameter's type, in the form that WMI documents for it: up to 32 bits as the next larger
// signed number, an unsigned one of 32 with its bits as they are, those of 64 as decimal text. What does not fit is an error.
// https://learn.microsoft.com/windows/win32/wmisdk/numbers
func typed(value any, to cimType) (any, error) {
	switch to {
	case 11: // boolean
		if v, ok := value.(bool); ok {
			return v, nil
		}
	case 8, 101, 102: // string, datetime, reference
		if v, ok := value.(string); ok {
			return v, nil
		}
	case 16: // sint8
		n, err := signedIn(value, 8)
		return int16(n), err // #nosec G115 -- checked in the line before
	case 2: // sint16
		n, err := signedIn(value, 16)
		return int16(n), err // #nosec G115 -- as above
	case 3: // sint32
		n, err := signedIn(value, 32)
		return int32(n), err // #nosec G115 -- as above
	case 17: // uint8
		n, err := unsignedIn(value, 8)
		return uint8(n), err // #nosec G115 -- as above
	case 18: // uint16
		n, err := unsignedIn(value, 16)
		return int32(n), err // #nosec G115 -- as above
	case cimUint32:
		n, err := unsignedIn(value, 32)
		return int32(uint32(n)), err // #nosec G115 -- the bits stay, and the sign is what they make
	case 20: // sint64
		n, err := signedIn(value, 64)
		return strconv.FormatInt(n, 10), err
	case 21: // uint64
		n, err := unsignedIn(value, 64)
		return strconv.FormatUint(n, 10), err
	}
	return nil, fmt.Errorf("a %T does not go with the type %d", value, to)
}

// signedIn takes a number of so many bits. One of 64 may come as decimal text.
func signedIn(value any, bits int) (int64, error) {
	least, most := int64(-1)<<(bits-1), int64(1)<<(bits-1)-1
	switch v := value.(type) {
	case int64:
		if v >= least && v <= most {
			return v, nil
		}
	case uint64:
		if v <= uint64(most) { // #nosec G115 -- most is positive
			return int64(v), nil // #nosec G115 -- checked in the line before
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && bits == 64 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the %T is not a signed number of %d bits", value, bits)
}

// unsignedIn takes a number of so many bits. One of 64 may come as decimal text.
func unsignedIn(value any, bits int) (uint64, error) {
	most := uint64(1)<<(bits-1)<<1 - 1
	switch v := value.(type) {
	case int64:
		if v >= 0 && uint64(v) <= most {
			return uint64(v), nil
		}
	case uint64:
		if v <= most {
			return v, nil
		}
	case string:
		if n, err := strconv.ParseUint(v, 10, 64); err == nil && bits == 64 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the %T is not an unsigned number of %d bits", value, bits)
}

// unsigned reads numbers of 32 bits again, without their sign: WMI returns them in signed ones, since scripts know no others.
func unsigned(value any) any {
	switch v := value.(type) {
	case int64:
		return uint64(uint32(v)) // #nosec G115 -- the bits without the sign
	case []any:
		for i := range v {
			v[i] = unsigned(v[i])
		}
	}
	return value
}
