package wmi

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/go-ole/go-ole"
)

// pointer is what a variant points to.
func pointer[T any](v *ole.VARIANT) *T { return *(**T)(unsafe.Pointer(&v.Val)) }

// variant makes one of a value that typed has returned.
func variant(value any) (*ole.VARIANT, error) {
	v := new(ole.VARIANT)
	switch a := value.(type) {
	case bool:
		*v = ole.NewVariant(ole.VT_BOOL, 0)
		if a {
			*v = ole.NewVariant(ole.VT_BOOL, 0xFFFF)
		}
	case uint8:
		*v = ole.NewVariant(ole.VT_UI1, int64(a))
	case int16:
		*v = ole.NewVariant(ole.VT_I2, int64(a))
	case int32:
		*v = ole.NewVariant(ole.VT_I4, int64(a))
	case string:
		*v = ole.NewVariant(ole.VT_BSTR, int64(newBSTR(a).arg())) // #nosec G115 -- an address
	default:
		return nil, fmt.Errorf("no variant is made of a %T", value)
	}
	return v, nil
}

// wipe frees what variant has made. Texts are overwritten.
func wipe(v *ole.VARIANT) {
	if v.VT == ole.VT_BSTR && v.Val != 0 {
		clear(unsafe.Slice(pointer[uint16](v), ole.SysStringLen(pointer[int16](v))))
	}
	_ = v.Clear()
}

// maxElements bounds an array in a property.
const maxElements = 1 << 20

// convert makes a Go value of a property. Embedded objects become instances.
func (f *field) convert(depth int) (any, error) {
	value, err := convert(&f.value, depth)
	if err == nil && f.kind&^cimArray == cimUint32 {
		value = unsigned(value)
	}
	return value, err
}

func convert(v *ole.VARIANT, depth int) (any, error) {
	if v.VT&ole.VT_ARRAY != 0 {
		return convertArray(v, depth)
	}
	switch v.VT {
	case ole.VT_EMPTY, ole.VT_NULL:
		return nil, nil
	case ole.VT_UNKNOWN, ole.VT_DISPATCH:
		return convertObject(v, depth)
	}
	return convertAt(v.VT, unsafe.Pointer(&v.Val))
}

// convertAt makes a Go value of what lies in memory as COM has it.
// https://learn.microsoft.com/windows/win32/api/wtypes/ne-wtypes-varenum
func convertAt(vt ole.VT, at unsafe.Pointer) (any, error) {
	switch vt {
	case ole.VT_BOOL:
		return *(*int16)(at) != 0, nil
	case ole.VT_BSTR:
		return ole.BstrToString(*(**uint16)(at)), nil
	case ole.VT_I1:
		return int64(*(*int8)(at)), nil
	case ole.VT_I2:
		return int64(*(*int16)(at)), nil
	case ole.VT_I4, ole.VT_INT:
		return int64(*(*int32)(at)), nil
	case ole.VT_I8:
		return *(*int64)(at), nil
	case ole.VT_UI1:
		return uint64(*(*uint8)(at)), nil
	case ole.VT_UI2:
		return uint64(*(*uint16)(at)), nil
	case ole.VT_UI4, ole.VT_UINT:
		return uint64(*(*uint32)(at)), nil
	case ole.VT_UI8:
		return *(*uint64)(at), nil
	case ole.VT_R4:
		return float64(math.Float32frombits(*(*uint32)(at))), nil
	case ole.VT_R8:
		return *(*float64)(at), nil
	}
	return nil, fmt.Errorf("a value of the COM type %d", vt)
}

// convertArray reads a SAFEARRAY of one dimension.
// https://learn.microsoft.com/windows/win32/api/oaidl/ns-oaidl-safearray
func convertArray(v *ole.VARIANT, depth int) (any, error) {
	array := pointer[struct {
		dimensions, _ uint16
		size, _       uint32
		data          unsafe.Pointer
		elements      uint32
	}](v)
	if v.VT&ole.VT_BYREF != 0 {
		return nil, fmt.Errorf("a value of the COM type %d", v.VT)
	}
	if array == nil {
		return nil, nil
	}
	if array.dimensions != 1 || array.elements > maxElements {
		return nil, fmt.Errorf("an array of %d dimensions and %d elements", array.dimensions, array.elements)
	}
	vt := v.VT &^ ole.VT_ARRAY
	values := make([]any, array.elements)
	for i := range values {
		at := unsafe.Add(array.data, uintptr(i)*uintptr(array.size))
		var err error
		switch vt {
		case ole.VT_VARIANT:
			values[i], err = convert((*ole.VARIANT)(at), depth)
		case ole.VT_DISPATCH, ole.VT_UNKNOWN:
			element := ole.NewVariant(vt, *(*int64)(at)) // the array holds the reference
			values[i], err = convertObject(&element, depth)
		default:
			values[i], err = convertAt(vt, at)
		}
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return values, nil
}

// maxDepth bounds objects within objects.
const maxDepth = 4

func convertObject(v *ole.VARIANT, depth int) (any, error) {
	if v.Val == 0 {
		return nil, nil
	}
	if depth >= maxDepth {
		return nil, fmt.Errorf("objects within objects, deeper than %d", maxDepth)
	}
	embedded, err := pointer[unknown](v).as(idClassObject)
	if err != nil {
		return nil, err
	}
	defer embedded.release()
	properties, err := object{embedded}.properties(nil, depth+1)
	if err != nil {
		return nil, err
	}
	return Instance{Properties: properties}, nil
}
