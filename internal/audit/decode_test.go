package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit/plainjson"
)

// differ holds Parse against encoding/json alone, and says whether the line was read without that.
func differ(t *testing.T, line []byte) (isFast bool) {
	t.Helper()
	got, err := Parse(line)
	want, wantErr := parse(line)
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Errorf("%q\n got error %v\nwant error %v", line, err, wantErr)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q is read as another event than by encoding/json: %s", line, diff)
	}
	isFast = decode(line, &Event{})
	for _, parts := range []Parts{0, AllParts, PartLog, PartWho, PartWhat, PartWhat | PartParams, PartWhat | PartTargets, PartDecision, PartCorr | PartWhere, AllParts &^ PartDecision} {
		got, ok := again.Read(string(line), parts)
		if ok != (isFast && err == nil) {
			t.Errorf("%q, parts %b: %v without encoding/json, and %v as a whole: %v", line, parts, ok, isFast, err)
		}
		if !ok {
			continue
		}
		if diff := cmp.Diff(without(want, parts), *got); diff != "" {
			t.Errorf("%q, parts %b: is read into memory as another event: %s", line, parts, diff)
		}
	}
	return isFast
}

// again is the memory of all lines of these tests: nothing of one may be left in the next.
var again Memory

// without is an event of which only some parts are wanted.
func without(e Event, wanted Parts) Event {
	if e.Outcome != nil && e.Outcome.Count > 1 {
		return e
	}
	leave := func(v reflect.Value) {
		for i := range v.NumField() {
			if partOf(v.Field(i).Type())&^wanted != 0 {
				v.Field(i).SetZero()
			}
		}
	}
	leave(reflect.ValueOf(&e).Elem())
	if e.What != nil {
		what := *e.What
		leave(reflect.ValueOf(&what).Elem())
		e.What = &what
	}
	return e
}

func TestPlainTimesAreThoseOfPackageTime(t *testing.T) {
	for _, text := range []string{
		"2026-03-04T05:06:07Z", "2026-03-04T05:06:07.5Z", "2026-03-04T05:06:07.123456789Z", "2026-03-04T05:06:07.1234567891Z", "2026-03-04T05:06:07.Z", "2026-03-04T05:06:07,5Z",
		"2024-02-29T00:00:00Z", "2026-02-29T00:00:00Z", "2026-02-28T23:59:59.999999999Z", "2026-04-31T00:00:00Z", "2026-12-31T23:59:59Z", "2026-12-32T00:00:00Z", "2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:60Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
		"0001-01-01T00:00:00Z", "2026-01-01t00:00:00Z", "2026-01-01T00:00:00z", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00", "2026-01-01T0:00:00Z", "", "Z", "2026-01-01T00:00:00.00000000xZ",
		"2026/01-01T00:00:00Z", "20260101T000000Z", "1900-02-29T00:00:00Z", "2000-02-29T00:00:00Z", "2026-01-01T00:00:00.-1Z", "-026-01-01T00:00:00Z",
	} {
		var want time.Time
		err := want.UnmarshalJSON([]byte(`"` + text + `"`))
		if got, ok := plainTime(text); ok && (err != nil || got != want) {
			t.Errorf("%q is %v, and for package time %v, %v", text, got, want, err)
		} else if !ok && err == nil && strings.HasSuffix(text, "Z") && len(text) <= len("2026-03-04T05:06:07.123456789Z") && !strings.Contains(text, ",") && !strings.Contains(text, "T0:") {
			t.Errorf("%q is left to package time", text)
		}
	}
}

func encoded(t testing.TB, e Event) []byte {
	t.Helper()
	line, err := Encode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.TrimSuffix(line, []byte("\n"))
}

// Whatever a writer writes is read without encoding/json, but for texts that it cannot read alike: new fields of types that the decoder does not know fail here.
func TestWrittenLinesAreDecodedFast(t *testing.T) {
	full := filled("text", 2)
	next := 0
	numbers(t, reflect.ValueOf(&full).Elem(), &next)
	full.V, full.Who.Process.PID, full.Type, full.Stage = Version, 7, TypeRequest, StageResponseComplete
	full.Decision.Effect, full.Outcome.Result = EffectAllow, ResultOK
	full.What.Params = json.RawMessage(`{"path":"C:\\a","n":[1,null,-5,true],"o":{"a":{},"b":[]}}`)
	odd := full
	odd.ID = "\x00\b\f\n\r\t\"\\/<>&\x7f\u0080\u202e\u2028囧\U0001f600"
	events := map[string]Event{"every field": full, "odd text": odd, "a sample": *sample()}
	for _, g := range goldenEvents() {
		e := g.event
		e.V, e.Seq, e.Session = Version, 1, "S"
		events[g.name] = e
	}
	for name, e := range events {
		e.stamp("session", 9)
		if line := encoded(t, e); !differ(t, line) {
			t.Errorf("%s is left to encoding/json: %s", name, line)
		}
	}
}

// Lines that differ in one thing from what a writer writes are read as before: as the same event, or with the same error.
func TestOtherSpellingsAreReadAlike(t *testing.T) {
	e := *sample()
	e.stamp("session", 9)
	line := string(encoded(t, e))
	for _, change := range [][2]string{
		{`"id"`, `"Id"`}, {`"id"`, `"i\u0064"`}, {`"v":1`, `"v":1.0`}, {`"v":1`, `"v":2`}, {`"v":1`, `"v":01`}, {`"v":1`, `"v":-0`}, {`"v":1`, ` "v":1`},
		{`"v":1,`, ``}, {`"v":1,`, `"v":1,"v":1,`}, {`"seq":9,`, ``}, {`{"v":1,"seq":9`, `{"seq":9,"v":1`}, {`"seq":9`, `"seq":18446744073709551615`},
		{`"seq":9`, `"seq":18446744073709551616`}, {`"seq":9`, `"seq":"9"`}, {`"seq":9`, `"seq":-9`}, {`"seq":9`, `"seq":9e0`}, {`"type":"request"`, `"type":"\u0072equest"`},
		{`"type":"request"`, `"type":"Request"`}, {`"type":"request"`, `"type":null`}, {`"stage":"`, `"stage":"x`}, {`"session":"session"`, `"session":""`},
		{`"time":"2`, `"time":"x`}, {`"time":"2`, `"time":"\u0032`}, {`"time":"`, `"time":"-`}, {`"pid":4711`, `"pid":4294967296`}, {`"pid":4711`, `"pid":4711,"extra":{"a":1}`},
		{`"who":{`, `"who":{"ghost":1,`}, {`"who":{`, `"who":null,"who":{`}, {`"latency_us":1234`, `"latency_us":-1234`}, {`"latency_us":1234`, `"latency_us":1234.5`},
		{`"effect":"allow"`, `"effect":"Allow"`}, {`"effect":"allow"`, `"effect":"deny","effect":"allow"`}, {`"result":"ok"`, `"result":"fine"`}, {`"effect":"allow",`, ``}, {`"result":"ok",`, ``},
		{`"params":{`, `"params":{"path":"x",`}, {`"params":{`, `"params":{"p\u0061th":"x",`}, {`"params":{`, `"params":{"n":1e999,`}, {`"params":{`, `"params":{"n":12345678901234567890,`},
		{`"params":{`, `"params":{"n":01,`}, {`"params":{`, `"params":{"Path":1,`}, {`"params":{`, `"params":{"a":{"b":1,"b":2},`}, {`"params":{`, `"params":{"s":"\ud800",`},
		{`"params":{`, `"params":{"s":"\x",`}, {`"params":{`, "\"params\":{\"s\":\"\xff\","}, {`"params":{`, `"params":{"deep":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `,`},
		{`"params":{`, `"params":{"deep":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `,`}, {`"params":{`, `"params":{ "blank":1,`}, {`"params":{"path"`, `"params":{,"path"`},
		{`"targets":[`, `"targets":[null,`}, {`"targets":[`, `"targets":[{},`}, {`"targets":[`, `"targets":[[],`}, {`"targets":[`, `"targets":[,`}, {`driver\\node`, `driver\/node`},
		{`driver\\node`, "driver\tnode"}, {`driver\\node`, "driver\xffnode"}, {`driver\\node`, `driver\ud83d\ude00`}, {`driver\\node`, `driver\ude00`}, {`driver\\node`, "driver\x7f"},
		{`driver\\node`, `driver\u12`}, {`driver\\node`, `driver\uFFFD`}, {`}}`, `}},`}, {`"node-1"}}`, `"node-1"}} `}, {`"node-1"}}`, `"node-1"}}{}`}, {`"node-1"}}`, `"node-1"}`},
		{`"where":{"node":"node-1"}`, `"where":{}`}, {`"where":{"node":"node-1"}`, `"where":{"node":"node-1","node":"node-2"}`}, {`"where":{"node":"node-1"}`, `"where":{"node":7}`},
		{`"where":{"node":"node-1"}`, `"where":{"node":"node-1",}`}, {`"where":{"node":"node-1"}`, `"where":[]`}, {line, ``}, {line, `null`}, {line, `{}`}, {line, `[]`}, {line, `{"v":2}`},
	} {
		if !strings.Contains(line, change[0]) {
			t.Fatalf("the sample has no %s", change[0])
		}
		differ(t, []byte(strings.Replace(line, change[0], change[1], 1)))
	}
	for i := range line {
		differ(t, []byte(line[:i]))
		differ(t, []byte(line[:i]+line[i+1:]))
	}
}

func FuzzPlainTime(f *testing.F) {
	f.Add("2026-03-04T05:06:07.123456789Z")
	f.Fuzz(func(t *testing.T, text string) {
		var want time.Time
		got, ok := plainTime(text)
		if err := want.UnmarshalJSON([]byte(`"` + text + `"`)); ok && (err != nil || got != want) {
			t.Errorf("%q is %v, and for package time %v, %v", text, got, want, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	e := *sample()
	e.stamp("session", 9)
	f.Add(encoded(f, e))
	for _, g := range goldenEvents() {
		e := g.event
		e.V, e.Seq, e.Session, e.Time = Version, 1, "S", time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC)
		f.Add(encoded(f, e))
	}
	f.Fuzz(func(t *testing.T, line []byte) { differ(t, line) })
}

func TestEntriesOfAListShareNoMemory(t *testing.T) {
	type entry struct {
		Number *int            `json:"number"`
		List   []string        `json:"list"`
		Raw    json.RawMessage `json:"raw"`
	}
	type all struct {
		Entries []entry `json:"entries"`
	}
	const text = `{"entries":[{"number":1,"list":["a"],"raw":[1]},{"number":2,"list":["b"],"raw":[2]}]}`
	var got, want all
	read, memory := readerOf(reflect.TypeFor[all]()), &Memory{}
	for range 2 { // the second time in memory that was used
		d := decoding{Cursor: plainjson.Cursor{In: text}, memory: memory}
		if !read(&d, reflect.ValueOf(&got).Elem()) {
			t.Fatal("it is not read")
		}
	}
	if err := json.Unmarshal([]byte(text), &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v, %v", got, want, err)
	}
}
