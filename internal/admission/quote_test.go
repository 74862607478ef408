package admission

import (
	"strings"
	"testing"
)

func TestPlainShowsWhatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{
		``:                            ``,
		`plain "text" with \\.\pipe\`: `plain "text" with \\.\pipe\`,
		"\x1b[2J":                     `<U+001B>[2J`,
		"a\r\nb\x00\x7f":              `a<U+000D><U+000A>b<U+0000><U+007F>`,
		"\u202egnp":                   `<U+202E>gnp`,
		"\xff":                        `<0xFF>`,
		"é":                           `<U+00E9>`,
	} {
		if got := Plain(in, 100); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPlainIsPrintableAndBounded(f *testing.F) {
	f.Add("a", 10)
	f.Add("\x1b\x1b\x1b\x1b", 20)
	f.Add(strings.Repeat("x", 2000), 1024)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 3 + (limit&0x7fffffff)%2000
		got := Plain(s, limit)
		if len(got) > limit || !isPlain(got, "") {
			t.Fatalf("Plain(%q, %d) = %q of %d bytes", s, limit, got, len(got))
		}
		if len(s) <= limit && isPlain(s, "") && got != s {
			t.Fatalf("Plain(%q, %d) = %q", s, limit, got)
		}
	})
}
