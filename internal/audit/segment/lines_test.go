package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// tell is what Lines say of a text up to its end: each line, or why there is none.
func tell(t testing.TB, in *Lines) (all []string) {
	t.Helper()
	for {
		line, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return append(all, fmt.Sprint("end of ", in.Size(), " bytes in line ", in.Number()))
		case err != nil && !errors.Is(err, audit.ErrTooLong):
			t.Fatal(err)
		case in.HasNUL() && err == nil:
			all = append(all, fmt.Sprintf("%q with a zero", line))
		case err != nil:
			all = append(all, fmt.Sprint("too long: ", in.Size()))
		default:
			all = append(all, string(line))
		}
		if errors.Is(err, ErrEndless) {
			return append(all, "endless")
		}
	}
}

func TestLinesAreBoundedAndCounted(t *testing.T) {
	const most = 3 * audit.MaxRecord
	long := func(n int) string { return strings.Repeat("x", n) }
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"nothing":                          {"", []string{"end of 0 bytes in line 1"}},
		"empty lines":                      {"\n\n", []string{"", "", "end of 0 bytes in line 3"}},
		"a torn line":                      {"a\nbc", []string{"a", "end of 2 bytes in line 2"}},
		"a zero":                           {"a\n\x00\nb\n", []string{"a", `"\x00" with a zero`, "b", "end of 0 bytes in line 4"}},
		"the longest record":               {long(audit.MaxRecord-1) + "\n", []string{long(audit.MaxRecord - 1), "end of 0 bytes in line 2"}},
		"a byte more":                      {long(audit.MaxRecord) + "\nb\n", []string{"too long: 8193", "b", "end of 0 bytes in line 3"}},
		"the longest line":                 {long(most-1) + "\nb\n", []string{"too long: 24576", "b", "end of 0 bytes in line 3"}},
		"the longest line without its end": {long(most), []string{"end of 24576 bytes in line 1"}},
		"a line without end":               {"a\n" + long(most+audit.MaxRecord), []string{"a", "endless"}},
	} {
		t.Run(name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{"at once": strings.NewReader(c.text), "byte by byte": iotest.OneByteReader(strings.NewReader(c.text))} {
				in := NewLines(r, audit.MaxRecord, most)
				got := tell(t, in)
				if n := len(got); got[n-1] == "endless" {
					got = append(got[:n-2], "endless") // how much was read of it is the reader's affair
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("%s: %.200q, want %.200q", how, got, c.want)
				}
			}
		})
	}
}

func TestLinesGoOnWhereTheyEnded(t *testing.T) {
	var text bytes.Buffer
	in := NewLines(&text, audit.MaxRecord, MaxLost)
	text.WriteString("first\nsec")
	if got := fmt.Sprint(tell(t, in)); got != "[first end of 3 bytes in line 2]" || in.Begin() != 6 || in.End() != 9 {
		t.Errorf("%s, from %d to %d", got, in.Begin(), in.End())
	}
	text.WriteString("ond\nthird")
	if got := fmt.Sprint(tell(t, in)); got != "[second end of 5 bytes in line 3]" || in.Begin() != 13 {
		t.Errorf("%s, from %d", got, in.Begin())
	}
	next := NewLines(strings.NewReader("third\n"), audit.MaxRecord, MaxLost)
	next.GoOn(in)
	if line, err := next.Next(); err != nil || string(line) != "third" || next.Number() != 3 || next.Begin() != 13 || !next.IsWhole() {
		t.Errorf("%q, %v: line %d from %d", line, err, next.Number(), next.Begin())
	}
	in.Reset(strings.NewReader("other\nrest of it"))
	line, err := in.Next()
	if err != nil || string(line) != "other" || in.Number() != 1 || in.Begin() != 0 {
		t.Errorf("%q, %v: line %d from %d", line, err, in.Number(), in.Begin())
	}
	if rest, err := io.ReadAll(in.Rest()); err != nil || string(rest) != "rest of it" {
		t.Errorf("%q, %v", rest, err)
	}
}
