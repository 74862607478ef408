package inert

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEachFaultOfAnErrorIsOneLine(t *testing.T) {
	one, other := errors.New("a\nforged"), errors.New("b\x1b[2J")
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"one":                  {one, []string{"a<U+000A>forged"}},
		"a list":               {errors.Join(one, other), []string{"a<U+000A>forged", "b<U+001B>[2J"}},
		"a list of a list":     {errors.Join(other, errors.Join(one, other)), []string{"b<U+001B>[2J", "a<U+000A>forged", "b<U+001B>[2J"}},
		"a list that is named": {fmt.Errorf("file x\ny: %w", errors.Join(one, other)), []string{"file x<U+000A>y: a<U+000A>forged", "b<U+001B>[2J"}},
		"a list in the middle": {fmt.Errorf("%w: end", errors.Join(one, one)), []string{"a<U+000A>forged<U+000A>a<U+000A>forged: end"}},
		"several in one text":  {fmt.Errorf("%w, %w", one, one), []string{"a<U+000A>forged, a<U+000A>forged"}},
		"a path":               {&fs.PathError{Op: "open", Path: "a\nb", Err: fs.ErrNotExist}, []string{"open a<U+000A>b: file does not exist"}},
	} {
		if diff := cmp.Diff(c.want, Faults(c.err)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestATerminalGetsNothingThatActs(t *testing.T) {
	var out bytes.Buffer
	text := "a\tb\n\x1b]0;x\a\u202e\u009b\xff\n"
	if n, err := Terminal(&out).Write([]byte(text)); n != len(text) || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if want := "a\tb\n<U+001B>]0;x<U+0007><U+202E><U+009B><0xFF>\n"; out.String() != want {
		t.Errorf("got %q", out.String())
	}
}
