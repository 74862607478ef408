package wmi

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func goodCall() Call {
	return Call{Namespace: SMB, Class: "MSFT_SmbGlobalMapping", Method: "Create", In: map[string]any{
		"RemotePath": `\\srv\share`, "Password": Secret("hunter2"), "RequirePrivacy": true, "Left": nil, "Size": uint64(5), "Kind": uint16(2),
	}}
}

func TestCallIsChecked(t *testing.T) {
	in, err := goodCall().check()
	if err != nil {
		t.Fatal(err)
	}
	want := []parameter{{"Kind", uint64(2)}, {"Password", "hunter2"}, {"RemotePath", `\\srv\share`}, {"RequirePrivacy", true}, {"Size", uint64(5)}}
	if diff := cmp.Diff(want, in, cmp.AllowUnexported(parameter{})); diff != "" {
		t.Error(diff)
	}
}

func TestCallRefuses(t *testing.T) {
	give := func(v any) func(*Call) { return func(c *Call) { c.In["Password"] = v } }
	for name, spoil := range map[string]func(*Call){
		"no class":                  func(c *Call) { c.Class = "" },
		"a class with a key":        func(c *Call) { c.Class = `C.K="hunter2"` },
		"no method":                 func(c *Call) { c.Method = "" },
		"a method with parentheses": func(c *Call) { c.Method = "Create()" },
		"no namespace":              func(c *Call) { c.Namespace = "" },
		"a namespace of elsewhere":  func(c *Call) { c.Namespace = `\\other\root` },
		"a path with a line break":  func(c *Call) { c.Path = "C.K=\"x\n\"" },
		"a parameter without name":  func(c *Call) { c.In[""] = "hunter2" },
		"a parameter that is none":  func(c *Call) { c.In["a b"] = "hunter2" },
		"a text with a NUL":         give("hunter2\x00"),
		"broken UTF-8":              give("hunter2\xff"),
		"a text without end":        give(strings.Repeat("hunter2", 5000)),
		"a fraction":                give(1.5),
		"bytes":                     give([]byte("hunter2")),
		"a list":                    give([]string{"hunter2"}),
		"a pointer":                 give(new("hunter2")),
		"a text of another type":    give(secretText("hunter2")),
		"a structure":               give(struct{ P string }{"hunter2"}),
	} {
		t.Run(name, func(t *testing.T) {
			call := goodCall()
			spoil(&call)
			in, err := call.check()
			if err == nil || in != nil {
				t.Fatalf("%d parameters", len(in))
			}
			if name != "a class with a key" && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error repeats the value: %v", err)
			}
		})
	}
}

type secretText string

func TestCallsDoNotShowTheirParameters(t *testing.T) {
	call := goodCall()
	encoded, err := json.Marshal(map[string]any{"call": call, "at": &call})
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(call), fmt.Sprintf("%v %+v %#v %s %q %x", call, call, call, call, call, call), fmt.Sprint(&call, []Call{call}), string(encoded)} {
		if strings.Contains(shown, "hunter2") || strings.Contains(shown, "68756e746572") || !strings.Contains(shown, "MSFT_SmbGlobalMapping.Create") {
			t.Error(shown)
		}
	}
}

func TestASecretIsPrintedAsOne(t *testing.T) {
	in := map[string]any{"P": Secret("hunter2")}
	encoded, err := json.Marshal(in)
	if err != nil || string(encoded) != `{"P":"[secret]"}` {
		t.Errorf("%s, %v", encoded, err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T%[1]v"} {
		if shown := fmt.Sprintf(verb, in["P"]); strings.TrimPrefix(shown, "wmi.Secret") != "[secret]" {
			t.Errorf("%s: %s", verb, shown)
		}
	}
	if shown := fmt.Sprint(in, fmt.Errorf("x %v", in)); strings.Contains(shown, "hunter2") {
		t.Error(shown)
	}
}

func TestArgumentsTakeTheTypeOfTheirParameter(t *testing.T) {
	const boolean, text, datetime, reference, sint8, sint16, sint32, sint64, uint8Type, uint16Type, uint64Type = 11, 8, 101, 102, 16, 2, 3, 20, 17, 18, 21
	for _, test := range []struct {
		value any
		to    cimType
		want  any
	}{
		{true, boolean, true},
		{"x", text, "x"},
		{"20260101000000.000000+000", datetime, "20260101000000.000000+000"},
		{"C.K=1", reference, "C.K=1"},
		{-128, sint8, int16(-128)},
		{int8(127), sint8, int16(127)},
		{-32768, sint16, int16(-32768)},
		{math.MinInt32, sint32, int32(math.MinInt32)},
		{uint8(3), sint32, int32(3)},
		{255, uint8Type, uint8(255)},
		{uint64(65535), uint16Type, int32(65535)},
		{2, cimUint32, int32(2)},
		{uint32(math.MaxUint32), cimUint32, int32(-1)}, // the same bits
		{int64(math.MinInt64), sint64, "-9223372036854775808"},
		{"-9223372036854775808", sint64, "-9223372036854775808"},
		{uint64(math.MaxUint64), uint64Type, "18446744073709551615"},
		{"18446744073709551615", uint64Type, "18446744073709551615"},
		{1048576, uint64Type, "1048576"},
	} {
		value, err := argument(test.value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := typed(value, test.to)
		if err != nil || got != test.want {
			t.Errorf("%T %v as %d: %T %v, %v; want %T %v", test.value, test.value, test.to, got, got, err, test.want, test.want)
		}
	}
}

func TestArgumentsThatDoNotFitAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		to    cimType
	}{
		"a text for a bool":               {"true", 11},
		"a number for a bool":             {1, 11},
		"a number for a text":             {1234567, 8},
		"a bool for a text":               {true, 8},
		"a bool for a number":             {true, 3},
		"a negative number for uint8":     {-1, 17},
		"256 for uint8":                   {256, 17},
		"65536 for uint16":                {65536, 18},
		"-1 for uint32":                   {-1, 19},
		"2^32 for uint32":                 {int64(math.MaxUint32) + 1, 19},
		"text for uint32":                 {"1234567", 19},
		"128 for sint8":                   {128, 16},
		"-129 for sint8":                  {-129, 16},
		"32768 for sint16":                {32768, 2},
		"2^31 for sint32":                 {uint32(math.MaxInt32) + 1, 3},
		"2^63 for sint64":                 {uint64(math.MaxInt64) + 1, 20},
		"-1 for uint64":                   {-1, 21},
		"-1 as text for uint64":           {"-1", 21},
		"2^64 as text for uint64":         {"18446744073709551616", 21},
		"nothing for uint64":              {"", 21},
		"hexadecimal text":                {"0x1234567", 21},
		"a fraction as text":              {"1234567.0", 21},
		"a space before":                  {" 1234567", 20},
		"2^63 as text for sint64":         {"9223372036854775808", 20},
		"an object":                       {"x", 13},
		"a fraction is what is asked for": {1, 5},
		"a list":                          {"x", 8 | cimArray},
		"a type that there is not":        {1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			value, err := argument(test.value)
			if err != nil {
				t.Fatal(err)
			}
			got, err := typed(value, test.to)
			if err == nil {
				t.Fatalf("%T %v", got, got)
			}
			if text := fmt.Sprint(test.value); len(text) > 5 && strings.Contains(err.Error(), text) {
				t.Errorf("the error repeats the value: %v", err)
			}
		})
	}
}

func TestResultIsSplit(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  uint32
	}{
		"success":              {int64(0), 0},
		"a small number":       {int64(4097), 4097},
		"a number of 32 bits":  {uint64(0xC0000022), 0xC0000022},
		"one with a sign":      {int64(-2147217407), 0x80041001},
		"the largest of them":  {int64(math.MaxUint32), math.MaxUint32},
		"the smallest of them": {int64(math.MinInt32), 0x80000000},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := result(map[string]any{"ReturnValue": test.value, "Size": "5"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(Result{Return: test.want, Out: map[string]any{"Size": "5"}}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoReturnValueIsNoSuccess(t *testing.T) {
	for name, value := range map[string]any{
		"none": nil, "text": "0", "a bool": false, "a fraction": 0.0, "a list": []any{int64(0)},
		"one that is too large": uint64(math.MaxUint32) + 1, "one that is too small": int64(math.MinInt32) - 1,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := result(map[string]any{"ReturnValue": value}); err == nil {
				t.Error(got)
			}
		})
	}
	if got, err := result(nil); err == nil {
		t.Error(got)
	}
}

func TestUnsignedNumbersLoseTheirSign(t *testing.T) {
	for _, test := range []struct{ value, want any }{
		{int64(-1), uint64(math.MaxUint32)},
		{int64(-2147217407), uint64(0x80041001)},
		{int64(5), uint64(5)},
		{[]any{int64(-1), int64(2)}, []any{uint64(math.MaxUint32), uint64(2)}},
		{nil, nil},
		{"x", "x"},
	} {
		if diff := cmp.Diff(test.want, unsigned(test.value)); diff != "" {
			t.Error(diff)
		}
	}
}
