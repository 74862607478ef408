package wmi

import (
	"math"
	"strings"
	"testing"
)

func disk(properties map[string]any) Instance {
	return Instance{Namespace: Storage, Path: `\\.\ROOT\Microsoft\Windows\Storage:MSFT_Disk.ObjectId="1"`, Properties: properties}
}

func TestUintReadsWhatWMIReturnsForNumbers(t *testing.T) {
	for name, test := range map[string]struct {
		value any
		want  uint64
	}{
		"a signed number":   {int64(7), 7},
		"an unsigned one":   {uint64(math.MaxUint64), math.MaxUint64},
		"64 bits as text":   {"18446744073709551615", math.MaxUint64},
		"zero as text":      {"0", 0},
		"the most positive": {int64(math.MaxInt64), math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := disk(map[string]any{"Size": test.value}).Uint("Size")
			if err != nil || got != test.want {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func TestAccessorsRefuseWhatTheyDoNotExpect(t *testing.T) {
	text := func(i Instance) error { _, err := i.Text("P"); return err }
	number := func(i Instance) error { _, err := i.Uint("P"); return err }
	boolean := func(i Instance) error { _, err := i.Bool("P"); return err }
	for name, test := range map[string]struct {
		properties map[string]any
		read       func(Instance) error
		says       string
	}{
		"a text that was not read":   {nil, text, "was not read"},
		"a number that was not read": {map[string]any{"p": int64(1)}, number, "was not read"},
		"a bool that was not read":   {map[string]any{}, boolean, "was not read"},
		"a text without value":       {map[string]any{"P": nil}, text, "has no value"},
		"a number without value":     {map[string]any{"P": nil}, number, "has no value"},
		"a bool without value":       {map[string]any{"P": nil}, boolean, "has no value"},
		"a number instead of text":   {map[string]any{"P": int64(1)}, text, "is a int64, not text"},
		"a list instead of text":     {map[string]any{"P": []any{"x"}}, text, "not text"},
		"a bool instead of a number": {map[string]any{"P": true}, number, "not a number"},
		"a fraction":                 {map[string]any{"P": 1.0}, number, "not a number"},
		"a list instead of a number": {map[string]any{"P": []any{int64(1)}}, number, "not a number"},
		"a negative number":          {map[string]any{"P": int64(-1)}, number, "-1 is negative"},
		"a negative number as text":  {map[string]any{"P": "-1"}, number, "is not a number"},
		"a number above 64 bits":     {map[string]any{"P": "18446744073709551616"}, number, "is not a number"},
		"an empty number":            {map[string]any{"P": ""}, number, "is not a number"},
		"a number with a sign":       {map[string]any{"P": "+1"}, number, "is not a number"},
		"a number with a space":      {map[string]any{"P": " 1"}, number, "is not a number"},
		"a hexadecimal number":       {map[string]any{"P": "0x10"}, number, "is not a number"},
		"a number with underscores":  {map[string]any{"P": "1_000"}, number, "is not a number"},
		"a number instead of a bool": {map[string]any{"P": int64(1)}, boolean, "not true or false"},
		"text that says true":        {map[string]any{"P": "TRUE"}, boolean, "not true or false"},
		"an embedded object as text": {map[string]any{"P": Instance{}}, text, "not text"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.read(disk(test.properties))
			if err == nil {
				t.Fatal("it was read")
			}
			for _, part := range []string{test.says, "MSFT_Disk.ObjectId", "property P"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
		})
	}
}

func TestAccessorsRead(t *testing.T) {
	i := disk(map[string]any{"T": "x", "E": "", "B": true, "F": false, "N": nil})
	if got, err := i.Text("T"); got != "x" || err != nil {
		t.Error(got, err)
	}
	if got, err := i.Text("E"); got != "" || err != nil {
		t.Error(got, err)
	}
	if got, err := i.Bool("B"); !got || err != nil {
		t.Error(got, err)
	}
	if got, err := i.Bool("F"); got || err != nil {
		t.Error(got, err)
	}
	for name, want := range map[string]bool{"T": true, "E": true, "F": true, "N": false, "X": false} {
		if got := i.Has(name); got != want {
			t.Errorf("Has(%s) is %t", name, got)
		}
	}
}

func TestAccessorsNameAnInstanceWithoutPath(t *testing.T) {
	_, err := Instance{Namespace: CIMv2}.Text("P")
	if err == nil || !strings.Contains(err.Error(), `an instance of root\\cimv2`) {
		t.Error(err)
	}
}
