package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// reference is the record as encoding/json makes it.
func reference(t testing.TB, e Event) string {
	t.Helper()
	line, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(inert.JSON(line))
}

// numbers gives every number, bool and time of v a value of its own, so that a field left out or mixed up shows.
func numbers(t *testing.T, v reflect.Value, next *int) {
	*next++
	switch v.Kind() {
	case reflect.Pointer:
		numbers(t, v.Elem(), next)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(*next), 0).UTC()))
			return
		}
		for _, f := range v.Fields() {
			numbers(t, f, next)
		}
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*next))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*next)) //nolint:gosec // a few hundred
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String, reflect.Slice: // filled
	default:
		t.Fatalf("a record has a %s, and no test of its line", v.Type())
	}
}

// The encoder has a list of the fields because it takes a third less time than one that goes by the types at run time. This holds it against the types.
func TestLinesAreThoseOfEncodingJSON(t *testing.T) {
	full := filled("text", 2)
	next := 0
	numbers(t, reflect.ValueOf(&full).Elem(), &next)
	full.What.Params = json.RawMessage(`{"path":"C:\\a","n":[1,null]}`)
	empty := filled("", 0)
	empty.Who.Process.Start, empty.Outcome.LatencyUS = time.Time{}, -1
	none := empty
	none.Log = &Log{Pruned: &Pruned{}}
	for name, e := range map[string]Event{
		"every field": full, "no field": {}, "only what holds fields": empty, "lists that are none": none, "a sample": *sample(),
		"another zone": {Time: time.Date(2026, 3, 4, 5, 6, 7, 890, time.FixedZone("x", 3600))},
	} {
		if got, want := string(appendEvent(nil, &e)), reference(t, e); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a", "b", []byte(`{"a": "<\u2028>"}`), uint64(1), int64(-5))
	f.Add("\x00\b\f\n\r\t\"\\<>&\x7f\u0080\u202e\U000e0041\u2028\u2029\xff\xed\xa0\x80", "囧\U0001f600", []byte("{\"a\" :\n \"\u202e\"}"), uint64(1<<63), int64(1<<62))
	f.Fuzz(func(t *testing.T, s, u string, params []byte, n uint64, m int64) {
		e := filled(s, 2)
		e.Who.User.Groups[1], e.ID, e.Outcome.Error, e.IntentSeq, e.Outcome.LatencyUS = u, u, u, n, m
		if json.Valid(params) {
			e.What.Params = params
		}
		got := appendEvent(nil, &e)
		want := reference(t, e)
		if len(want) > MaxRecord { // it is given up where it is too long
			if len(got) <= MaxRecord {
				t.Errorf("of a record that is too long: %q", got)
			}
			return
		}
		if string(got) != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
		if bytes.ContainsAny(got, "\n\r\x1b") || !json.Valid(got) {
			t.Errorf("not a line of JSON: %q", got)
		}
	})
}
