package inert

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestTextThatCouldActOnATerminalIsShownInert(t *testing.T) {
	for name, c := range map[string]struct{ in, line, text string }{
		"plain ASCII is untouched":             {`\\.\pipe\csi-proxy-disk-v1`, `\\.\pipe\csi-proxy-disk-v1`, `\\.\pipe\csi-proxy-disk-v1`},
		"letters of other scripts stay":        {"Käse 名", "Käse 名", "Käse 名"},
		"an escape sequence loses its escape":  {"a\x1b[2Jb", "a<U+001B>[2Jb", "a<U+001B>[2Jb"},
		"a newline forges no line":             {"a\nb", "a<U+000A>b", "a\nb"},
		"a carriage return overwrites nothing": {"a\rb", "a<U+000D>b", "a<U+000D>b"},
		"a tab is a blank only in text":        {"a\tb", "a<U+0009>b", "a\tb"},
		"a C1 control is shown":                {"a\u009bb", "a<U+009B>b", "a<U+009B>b"},
		"a right-to-left override is shown":    {"a\u202eb", "a<U+202E>b", "a<U+202E>b"},
		"a zero-width space is shown":          {"a\u200bb", "a<U+200B>b", "a<U+200B>b"},
		"a line separator is shown":            {"a\u2028b", "a<U+2028>b", "a<U+2028>b"},
		"a combining mark is shown":            {"a\u0336b", "a<U+0336>b", "a<U+0336>b"},
		"a byte that is no UTF-8 is shown":     {"a\xffb", "a<0xFF>b", "a<0xFF>b"},
		"delete is shown":                      {"a\x7fb", "a<U+007F>b", "a<U+007F>b"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff([]string{c.line, c.text}, []string{Line(c.in), Text(c.in)}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarshalIsReadableAndInert(t *testing.T) {
	for name, c := range map[string]struct {
		in   any
		want string
	}{
		"angle brackets and ampersands stay":                 {"<a&b>", `"<a&b>"`},
		"a C1 control is escaped":                            {"\u009b", `"\u009b"`},
		"a bidirectional control is escaped":                 {"\u202e", `"\u202e"`},
		"a rune beyond the first plane is escaped as a pair": {"\U000e0001", `"\udb40\udc01"`},
		"an escape is escaped":                               {"\x1b", `"\u001b"`},
		"bytes that are no UTF-8 are replaced":               {"\xff", `"\ufffd"`},
		"those of a document, too":                           {json.RawMessage("\"\xff\""), `"\ufffd"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Marshal(c.in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want+"\n", string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMarshalReportsWhatCannotBeEncoded(t *testing.T) {
	if _, err := MarshalIndent(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func FuzzOutputIsInertAndJSONMeansTheSame(f *testing.F) {
	f.Add("a\x1b[0m\u202e\xff")
	f.Add(`\\.\pipe\x`)
	f.Add("\u2028\U000e0001")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Line(s) {
			if !IsInert(r) {
				t.Errorf("Line(%q) holds %U", s, r)
			}
		}
		if strings.Contains(Line(s), "\n") {
			t.Errorf("Line(%q) holds a line break", s)
		}
		doc, err := MarshalIndent([]string{s})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range string(doc) {
			if r != '\n' && !IsInert(r) {
				t.Errorf("JSON of %q holds %U", s, r)
			}
		}
		var back []string
		if err := json.Unmarshal(doc, &back); err != nil {
			t.Fatal(err)
		}
		if utf8.ValidString(s) && back[0] != s {
			t.Errorf("%q came back as %q", s, back[0])
		}
	})
}
