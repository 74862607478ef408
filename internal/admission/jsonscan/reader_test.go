package jsonscan

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// tree reads a whole text the way a caller would, into the values that encoding/json gives.
func tree(r *Reader) any {
	switch r.peek() {
	case '{':
		m := map[string]any{}
		for o := r.Object(); o.Next(); {
			key := string(o.Key())
			m[key] = tree(r)
		}
		return m
	case '[':
		s := []any{}
		for a := r.Array(); a.Next(); {
			s = append(s, tree(r))
		}
		return s
	case '"':
		return r.String()
	case 't', 'f':
		v, _ := r.Bool()
		return v
	case 'n':
		r.Null()
		return nil
	default:
		raw := r.Raw()
		if r.Err() != nil {
			return nil
		}
		return json.Number(raw)
	}
}

func reference(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

func depth(data []byte) (most int) {
	n := 0
	for _, c := range data { // counts brackets in strings too: an upper bound
		switch c {
		case '{', '[':
			n++
			most = max(most, n)
		case '}', ']':
			n--
		}
	}
	return most
}

// longNumber fits each number that is too long, and texts that hold one.
var longNumber = regexp.MustCompile(`[-+.eE0-9]{500,}`)

func FuzzReaderAgreesWithEncodingJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0.5e+10`, `01`, `1.`, `.5`, `1e`, `-`, `"a"`, `"\u0068ostPath"`,
		`"\ud83d\ude00"`, `"\ud83d"`, `"\ud83d\u0041"`, `"\udc00\ud83d\ude00"`, `"\x"`, `"\u12g4"`, "\"\x01\"", "\"\xff\"", `"`, `"\`, `"\u12`,
		`{"a":1,}`, `{"a" 1}`, `{"a":}`, `{,}`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1}{`, "{}\x00", `{"a":[{"b":"c"},null,true]} `, "\ufeff{}", `{"a":nul}`, `tru`, ``,
		" \t\r\n{ \"a\" :\n1 , \"b\":[ ] } ",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		skip := NewReader(data)
		skip.Skip()
		skip.End()
		read := NewReader(data)
		got := tree(read)
		read.End()
		if (skip.Err() == nil) != (read.Err() == nil) {
			t.Fatalf("skipping says %v, reading says %v", skip.Err(), read.Err())
		}
		valid := json.Valid(data) && utf8.Valid(data)
		if read.Err() == nil && !valid {
			t.Fatalf("accepted invalid JSON %q", data)
		}
		if read.Err() != nil {
			if valid && depth(data) <= MaxDepth && !longNumber.Match(data) {
				t.Fatalf("refused valid JSON %q: %v", data, read.Err())
			}
			return
		}
		want, err := reference(data)
		if err != nil {
			t.Fatalf("reference: %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("values differ (-encoding/json +jsonscan):\n%s", diff)
		}
	})
}

func TestReaderRefusesWhatIsNotOneJSONText(t *testing.T) {
	for name, text := range map[string]string{
		"nothing at all":                      "",
		"only white space":                    " \n",
		"a second text":                       "{} {}",
		"a NUL byte at the end":               "{}\x00",
		"a NUL byte at the start":             "\x00{}",
		"a byte order mark":                   "\ufeff{}",
		"a trailing comma":                    `{"a":1,}`,
		"a leading comma":                     `[,1]`,
		"a key without quotes":                `{a:1}`,
		"a number with a leading zero":        `01`,
		"a number of many digits":             `{"a":[` + strings.Repeat("9", MaxNumber+1) + `]}`,
		"a string with a raw newline":         "\"a\nb\"",
		"a string with an unknown escape":     `"\q"`,
		"a string that does not end":          `"abc`,
		"an object that does not end":         `{"a":{"b":1}`,
		"invalid UTF-8":                       "\"\xc3\x28\"",
		"one level of nesting more than most": strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1),
		"a million open brackets":             strings.Repeat("[", 1_000_000),
		"a million open objects":              strings.Repeat(`{"a":`, 1_000_000),
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader([]byte(text))
			r.Skip()
			r.End()
			if r.Err() == nil {
				t.Error("it was accepted")
			}
		})
	}
	r := NewReader([]byte(strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)))
	if r.Skip(); r.Err() != nil {
		t.Errorf("the deepest text that is allowed: %v", r.Err())
	}
}

func TestADuplicateKeyIsRefusedHoweverItIsSpelled(t *testing.T) {
	for text, wantErr := range map[string]bool{
		`{"spec":1,"spec":2}`:           true,
		`{"spec":1,"\u0073pec":2}`:      true,
		`{"spec":1,"Spec":2,"SPEC":3}`:  false,
		`{"spec":1,"other":2,"more":3}`: false,
	} {
		r := NewReader([]byte(text))
		r.Members(Value("first", r.Skip), Value("spec", r.Skip))
		if got := r.Err() != nil; got != wantErr {
			t.Errorf("%s: error %v, want an error: %t", text, r.Err(), wantErr)
		}
	}
}

func TestMarkSeesKeysInSkippedValuesAndNoValues(t *testing.T) {
	isHostPath := func(key []byte, _ byte, _ bool) bool { return string(key) == "hostPath" }
	for text, want := range map[string]bool{
		`{"a":[{"b":{"hostPath":1}}]}`:   true,
		`{"a":{"\u0068ost\u0050ath":1}}`: true,
		`{"a":"hostPath"}`:               false,
		`{"a":["hostPath",{"x":"y"}]}`:   false,
		`{"HostPath":1,"hostpath":2}`:    false,
		`{"f:hostPath":1}`:               false,
	} {
		r := NewReader([]byte(text))
		r.Mark(isHostPath)
		r.Skip()
		if r.Err() != nil || r.Marked() != want {
			t.Errorf("%s: marked %t, %v; want %t", text, r.Marked(), r.Err(), want)
		}
	}
}

func TestReaderRefusesValuesOfAnotherType(t *testing.T) {
	for name, read := range map[string]func(*Reader){
		"an object for a string":  func(r *Reader) { _ = r.String() },
		"an object for a boolean": func(r *Reader) { r.Bool() },
		"an object for an array":  func(r *Reader) { r.Array() },
	} {
		r := NewReader([]byte(`{}`))
		if read(r); r.Err() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	r := NewReader([]byte(`"true"`))
	if r.Bool(); r.Err() == nil {
		t.Error("a string for a boolean was accepted")
	}
	r = NewReader([]byte(`[]`))
	if r.Object(); r.Err() == nil {
		t.Error("an array for an object was accepted")
	}
}
