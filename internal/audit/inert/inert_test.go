package inert

import (
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestLineActsOnNoTerminal(t *testing.T) {
	for in, want := range map[string]string{
		`\\.\pipe\a`:     `\\.\pipe\a`,
		"Käse 名":         "Käse 名",
		"a\x1b[2Jb":      "a<U+001B>[2Jb",
		"a\nb":           "a<U+000A>b",
		"a\rb":           "a<U+000D>b",
		"a\u009bb":       "a<U+009B>b",
		"a\u202eb":       "a<U+202E>b",
		"a\u2066b":       "a<U+2066>b",
		"a\u200bb":       "a<U+200B>b",
		"a\u2028b":       "a<U+2028>b",
		"a\u0336b":       "a<U+0336>b",
		"a\xffb":         "a<0xFF>b",
		"a\U000e0041b":   "a<U+E0041>b",
		"a\ue000b":       "a<U+E000>b",
		"plain \x7f del": "plain <U+007F> del",
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLettersAndSymbolsThatShowNothingAreEscaped(t *testing.T) {
	for in, want := range map[string]string{
		"a\u115fb":     "a<U+115F>b",
		"a\u1160b":     "a<U+1160>b",
		"a\u3164b":     "a<U+3164>b",
		"a\uffa0b":     "a<U+FFA0>b",
		"a\u2800b":     "a<U+2800>b",
		"a\U0001d159b": "a<U+1D159>b",
		"a\u2801b":     "a\u2801b",
		"한글":           "한글",
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
		if got := string(JSON([]byte(`"` + in + `"`))); (got == `"`+in+`"`) != (in == want) {
			t.Errorf("JSON of %q = %s", in, got)
		}
	}
}

func TestCellIsNoFormula(t *testing.T) {
	for _, in := range []string{
		"=1+1", "+1", "-1", "@SUM(A1)", "|calc", "%0A", " =1", "   @x", "\t=1", "\r=1", "\n=1", "\x00=1", "＝1+1", "＋1", "－1", "＠x",
		"=cmd|' /C calc'!A0", "\u202e=1", "\u200b=1",
	} {
		if got := Cell(in); !strings.HasPrefix(got, "'") || strings.ContainsAny(got, "\t\r\n\x00\u202e\u200b") {
			t.Errorf("Cell(%q) = %q", in, got)
		}
	}
	for _, in := range []string{"", "  ", "C:\\a", "kube-system/x", "7", "a=b", "a-b", "\"quoted\""} {
		if got := Cell(in); got != in {
			t.Errorf("Cell(%q) = %q: ordinary text is left alone", in, got)
		}
	}
}

func TestNoCellIsAFormulaWhereverCellsEnd(t *testing.T) {
	for _, in := range []string{"=1", "x;=1+1", `1=x;"=1+1;y`, `x;" =3+3;y`, `x;""=1`, `";"=1`, `"";"";"@x`, `x; ;" "=1;`, `x;"a";=1`, `=1;"-1"`} {
		noFormula(t, in)
	}
}

// noFormula reads a row with a text as a program would that separates cells by other characters.
func noFormula(t *testing.T, text string) {
	t.Helper()
	row := `a,"` + strings.ReplaceAll(Cell(text), `"`, `""`) + `",z`
	for _, separator := range ",;\t" {
		r := csv.NewReader(strings.NewReader(row))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord = separator, true, -1
		cells, err := r.Read()
		if err != nil {
			t.Fatalf("%q by %q: %v", row, separator, err)
		}
		for _, c := range cells {
			if c = strings.TrimLeft(c, ` "`); c != "" && strings.ContainsRune("=+-@", rune(c[0])) {
				t.Errorf("%q by %q has the cell %q", row, separator, c)
			}
		}
	}
}

func TestJSONMeansTheSame(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b"}`:               `{"a":"b"}`,
		"{\"a\":\r\t\"b\"}":       `{"a":  "b"}`,
		"{\"a\":\"\u202e\"}":      `{"a":"\u202e"}`,
		"{\"a\":\"\u009b\x7f\"}":  `{"a":"\u009b\u007f"}`,
		"{\"a\":\"\U000e0041\"}":  `{"a":"\udb40\udc41"}`,
		`{"a":"</script>&"}`:      `{"a":"\u003c/script\u003e\u0026"}`,
		"{\"a\":\"\xff\"}":        `{"a":"\ufffd"}`,
		`{"a":"Käse"}`:            `{"a":"Käse"}`,
		`{"a":"\u202e stays so"}`: `{"a":"\u202e stays so"}`,
	} {
		if got := string(JSON([]byte(in))); got != want {
			t.Errorf("JSON(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzNothingActs(f *testing.F) {
	for _, s := range []string{"=1", "\x1b[2J", "</script>", "\u202e", "\xff\xfe", "a,\"b\"\n", `x;"=1`, `";"" =1`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		line := Line(s)
		for _, r := range line {
			if !IsInert(r) {
				t.Fatalf("Line(%q) holds %U", s, r)
			}
		}
		var out strings.Builder
		w := csv.NewWriter(&out)
		if err := w.Write([]string{Cell(s), "x"}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		noFormula(t, s)
		if strings.Count(out.String(), "\n") != 1 {
			t.Fatalf("%q takes several lines: %q", s, out.String())
		}
		doc, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back string
		if err := json.Unmarshal(JSON(doc), &back); err != nil || utf8.ValidString(s) && back != s {
			t.Fatalf("%q came back as %q, %v", s, back, err)
		}
		if strings.ContainsAny(string(JSON(doc)), "<>&\x1b\u202e\n") {
			t.Fatalf("JSON(%q) = %q", doc, JSON(doc))
		}
	})
}
