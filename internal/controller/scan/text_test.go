package scan

import (
	"strings"
	"testing"
)

func TestInertShowsWhatATerminalWouldObey(t *testing.T) {
	for in, want := range map[string]string{
		``:                            ``,
		`plain "text" with \\.\pipe\`: `plain "text" with \\.\pipe\`,
		"\x1b[2J":                     `<U+001B>[2J`,
		"a\r\nb\x00\x7f":              `a<U+000D><U+000A>b<U+0000><U+007F>`,
		"\u202egnp":                   `<U+202E>gnp`,
		"\xff":                        `<0xFF>`,
		"é":                           `<U+00E9>`,
	} {
		if got := inert(in, 100); got != want {
			t.Errorf("inert(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzInertIsPrintableAndBounded(f *testing.F) {
	f.Add("a", 10)
	f.Add("\x1b\x1b\x1b\x1b", 20)
	f.Add(strings.Repeat("x", 2000), maxMessage)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = 3 + (limit&0x7fffffff)%2000
		got := inert(s, limit)
		if len(got) > limit || !isInert(got) {
			t.Fatalf("inert(%q, %d) = %q of %d bytes", s, limit, got, len(got))
		}
		if len(s) <= limit && isInert(s) && got != s {
			t.Fatalf("inert(%q, %d) = %q", s, limit, got)
		}
	})
}
