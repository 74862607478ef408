package wmi

import (
	"math"
	"testing"
	"unsafe"

	"github.com/go-ole/go-ole"
	"github.com/google/go-cmp/cmp"
)

func TestVariantsAreConverted(t *testing.T) {
	text := newBSTR("größer \U0001F4BE")
	defer text.free()
	for name, test := range map[string]struct {
		vt   ole.VT
		val  int64
		want any
	}{
		"nothing":                {ole.VT_EMPTY, 0, nil},
		"null":                   {ole.VT_NULL, 7, nil},
		"true":                   {ole.VT_BOOL, 0xFFFF, true},
		"false":                  {ole.VT_BOOL, 0x10000, false},
		"text":                   {ole.VT_BSTR, int64(text.arg()), "größer \U0001F4BE"},
		"text that is null":      {ole.VT_BSTR, 0, ""},
		"sint8":                  {ole.VT_I1, 0xFF, int64(-1)},
		"sint16":                 {ole.VT_I2, 0xFFFE, int64(-2)},
		"sint32":                 {ole.VT_I4, 0xFFFFFFFD, int64(-3)},
		"sint64":                 {ole.VT_I8, math.MinInt64, int64(math.MinInt64)},
		"uint8":                  {ole.VT_UI1, 0x1FF, uint64(255)},
		"uint16":                 {ole.VT_UI2, 0x1FFFF, uint64(65535)},
		"uint32":                 {ole.VT_UI4, -1, uint64(math.MaxUint32)},
		"uint64":                 {ole.VT_UI8, -1, uint64(math.MaxUint64)},
		"real32":                 {ole.VT_R4, int64(math.Float32bits(1.5)), 1.5},
		"real64":                 {ole.VT_R8, int64(math.Float64bits(-2.25)), -2.25},
		"an object that is null": {ole.VT_UNKNOWN, 0, nil},
		"an array that is null":  {ole.VT_ARRAY | ole.VT_I4, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			v := ole.NewVariant(test.vt, test.val)
			got, err := convert(&v, 0)
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func TestVariantsOfOtherTypesAreRefused(t *testing.T) {
	for name, vt := range map[string]ole.VT{
		"money": ole.VT_CY, "a date": ole.VT_DATE, "a decimal": ole.VT_DECIMAL, "an error": ole.VT_ERROR, "a record": ole.VT_RECORD,
		"a reference": ole.VT_BYREF | ole.VT_I4, "a reference to an array": ole.VT_BYREF | ole.VT_ARRAY | ole.VT_I4,
	} {
		t.Run(name, func(t *testing.T) {
			v := ole.NewVariant(vt, 0)
			if got, err := convert(&v, 0); err == nil {
				t.Errorf("%T %v", got, got)
			}
		})
	}
}

// vector makes a hand-made array, whose bytes are as given.
func vector(t *testing.T, vt ole.VT, n int, data []byte) ole.VARIANT {
	t.Helper()
	made, _, _ := oleaut32.NewProc("SafeArrayCreateVector").Call(uintptr(vt), 0, uintptr(n))
	if made == 0 {
		t.Fatal("no array was made")
	}
	v := ole.NewVariant(ole.VT_ARRAY|vt, int64(made))
	var start *byte
	hr, _, _ := oleaut32.NewProc("SafeArrayAccessData").Call(made, uintptr(unsafe.Pointer(&start)))
	if hr != 0 {
		t.Fatalf("0x%08X", hr)
	}
	copy(unsafe.Slice(start, len(data)), data)
	_, _, _ = oleaut32.NewProc("SafeArrayUnaccessData").Call(made)
	t.Cleanup(func() { _ = v.Clear() })
	return v
}

func TestArraysAreConverted(t *testing.T) {
	for name, test := range map[string]struct {
		vt   ole.VT
		n    int
		data []byte
		want []any
	}{
		"none":     {ole.VT_I4, 0, nil, []any{}},
		"bools":    {ole.VT_BOOL, 3, []byte{0xFF, 0xFF, 0, 0, 0xFF, 0xFF}, []any{true, false, true}},
		"bytes":    {ole.VT_UI1, 2, []byte{1, 255}, []any{uint64(1), uint64(255)}},
		"numbers":  {ole.VT_I4, 2, []byte{1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}, []any{int64(1), int64(-1)}},
		"variants": {ole.VT_VARIANT, 2, append(append([]byte{3, 0, 0, 0, 0, 0, 0, 0, 9}, make([]byte, 15)...), 1, 0), []any{int64(9), nil}},
	} {
		t.Run(name, func(t *testing.T) {
			v := vector(t, test.vt, test.n, test.data)
			got, err := convert(&v, 0)
			if diff := cmp.Diff(any(test.want), got); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	dates := vector(t, ole.VT_DATE, 1, make([]byte, 8))
	if got, err := convert(&dates, 0); err == nil {
		t.Error(got)
	}
	unsignedNumbers := field{value: vector(t, ole.VT_I4, 1, []byte{0xFF, 0xFF, 0xFF, 0xFF}), kind: cimUint32 | cimArray}
	if got, err := unsignedNumbers.convert(0); err != nil || got.([]any)[0] != uint64(math.MaxUint32) {
		t.Error(got, err)
	}
}

func TestWhatIsGivenToCOMReadsTheSame(t *testing.T) {
	for _, value := range []any{true, false, "", "text \U0001F4BE", uint8(200), int16(-5), int32(math.MinInt32)} {
		v, err := variant(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := convert(v, 0)
		want := value
		switch n := value.(type) {
		case uint8:
			want = uint64(n)
		case int16:
			want = int64(n)
		case int32:
			want = int64(n)
		}
		if got != want || err != nil {
			t.Errorf("%T %v reads %T %v, %v", value, value, got, got, err)
		}
		wipe(v)
		if v.VT != ole.VT_EMPTY {
			t.Errorf("%v is left", v.VT)
		}
	}
	if _, err := variant(1.5); err == nil {
		t.Error("a fraction was taken")
	}
}
