package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// filled returns an event in which every string is s and every list has n entries.
func filled(s string, n int) Event {
	var e Event
	fill(reflect.ValueOf(&e).Elem(), s, n)
	e.What.Params = nil
	e.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	e.Who.Process.Start = e.Time
	return e
}

func fill(v reflect.Value, s string, n int) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), s, n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), s, n)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(v.Index(i), s, n)
		}
	case reflect.String:
		v.SetString(s)
	}
}

func TestRecordsAreBoundedWhateverTheyHold(t *testing.T) {
	for name, s := range map[string]string{
		"letters": strings.Repeat("x", 20_000), "control characters": strings.Repeat("\x01", 20_000), "quotes": strings.Repeat(`"`, 20_000),
		"bytes that are not UTF-8": strings.Repeat("\xff", 20_000), "astral format characters": strings.Repeat("\U000e0001", 10_000),
		"Chinese": strings.Repeat("囧", 10_000), "markup": strings.Repeat("<&>", 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			e := filled(s, 40)
			e.What.Params, _ = json.Marshal(s)
			before := e.What.Targets[0].Value
			e.stamp("session", 1)
			line, err := Encode(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			if len(line) > MaxRecord {
				t.Errorf("%d bytes", len(line))
			}
			var back Event
			if err := json.Unmarshal(line, &back); err != nil || !utf8.Valid(line) {
				t.Fatalf("not JSON: %v", err)
			}
			if !strings.Contains(back.Outcome.Error, "bytes cut]") || !strings.Contains(back.What.Targets[len(back.What.Targets)-1].Value, "entries cut]") ||
				!strings.Contains(string(back.What.Params), "bytes cut]") {
				t.Errorf("cuts without a mark: error %q, last target %q, params %s", back.Outcome.Error, back.What.Targets[len(back.What.Targets)-1].Value, back.What.Params)
			}
			if e.What.Targets[0].Value != before || len(e.Who.User.Groups) != 40 {
				t.Error("the caller's event was changed")
			}
		})
	}
}

func TestShortRecordsAreWhole(t *testing.T) {
	e := filled("text", 2)
	e.Type, e.Stage, e.Decision.Effect, e.Outcome.Result = TypeRequest, StageResponseComplete, EffectAllow, ResultOK
	e.What.Params = json.RawMessage(`{"path":"C:\\a"}`)
	e.stamp("session", 7)
	line, err := Encode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, got); diff != "" {
		t.Error(diff)
	}
}

func TestHostileTextStaysInert(t *testing.T) {
	hostile := "a\nb\r\x1b[31m\u202etxt\u2028</script>\x00\x7f\u009b31m\xff\U000e0041=cmd()\u3164\uffa0\u115f\u034f\u2800\u00a0"
	e := Event{Type: TypeRequest, Stage: StageResponseComplete, ID: "a", Outcome: &Outcome{Result: ResultDenied, Error: hostile}, What: &What{Params: json.RawMessage("not json\n{")}}
	e.stamp("session", 1)
	line, err := Encode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(line, []byte("\n")); n != 1 || !bytes.HasSuffix(line, []byte("\n")) {
		t.Errorf("%d newlines", n)
	}
	for _, r := range string(line[:len(line)-1]) {
		if r < 0x20 || r == '<' || isInvisible(r) || r == '\u2028' {
			t.Errorf("%U stands in the record as it is", r)
		}
	}
	if strings.ContainsAny(string(line), "\u3164\uffa0\u115f\u034f\u2800\u00a0") {
		t.Errorf("letters that show nothing stand as they are in %s", line)
	}
	var back Event
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	if want := strings.ToValidUTF8(hostile, "\ufffd"); back.Outcome.Error != want {
		t.Errorf("read back as %q, want %q", back.Outcome.Error, want)
	}
	if string(back.What.Params) != `"not json\n{"` {
		t.Errorf("params %s", back.What.Params)
	}
}

func TestImpossibleTimeIsAnErrorAndNoGap(t *testing.T) {
	var out bytes.Buffer
	s := NewStream(&out)
	e := request("a", StageResponseComplete, 0, ResultDenied)
	e.Time = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	if seq, err := s.Append(t.Context(), e); err == nil || seq != 0 {
		t.Errorf("number %d, error %v", seq, err)
	}
	mustAppend(t, s, request("b", StageResponseComplete, 0, ResultDenied))
	if r := report(t, out.String()); r.FaultCount != 0 || r.Terminals != 1 {
		t.Errorf("report %+v", r)
	}
}
