package copies

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestStdoutHasTheRawLines(t *testing.T) {
	var out, want bytes.Buffer
	c := mustNew(t, Options{Destinations: []Destination{Stdout(&out)}})
	for i := range uint64(50) {
		l := line(t, numbered(i+1))
		want.Write(l)
		c.Record(l)
	}
	if err := c.Checkpoints()[0].Send(t.Context(), checkpoint("o\n1\nr=\n\n— o s\n", false)); err != nil {
		t.Fatal(err)
	}
	mustClose(t, c)
	want.WriteString(`{"type":"checkpoint","note":"o\n1\nr=\n\n— o s\n"}` + "\n")
	if diff := cmp.Diff(want.String(), out.String()); diff != "" {
		t.Error(diff)
	}
	read := 0
	for l := range bytes.Lines(out.Bytes()) {
		if _, err := audit.Parse(bytes.TrimSuffix(l, []byte("\n"))); err == nil {
			read++
		}
	}
	if read != 50 {
		t.Errorf("%d records of 50 can be read", read)
	}
}

// narrow takes so many bytes, then no more until it is told.
type narrow struct {
	bytes.Buffer
	room int
}

func (n *narrow) Write(p []byte) (int, error) {
	k := min(n.room, len(p))
	n.room -= k
	n.Buffer.Write(p[:k])
	if k < len(p) {
		return k, io.ErrClosedPipe
	}
	return k, nil
}

func TestStdoutAfterATornLineBeginsOnANewOne(t *testing.T) {
	w := &narrow{room: 6}
	p := Stdout(w)
	batch := []Record{{Line: []byte("aaa")}, {Line: []byte("bbb")}, {Line: []byte("ccc")}}
	var partial *PartialError
	if err := p.Send(t.Context(), batch); !errors.As(err, &partial) || partial.Failed != 2 || !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
	if err := p.Send(t.Context(), batch); !errors.As(err, &partial) || partial.Failed != 3 {
		t.Errorf("%v", err)
	}
	w.room = 1000
	if err := p.Send(t.Context(), batch); err != nil {
		t.Error(err)
	}
	if got := w.String(); got != "aaa\nbb\naaa\nbbb\nccc\n" {
		t.Errorf("%q", got)
	}
}

func TestStdoutTakesNoRecordThatWouldBeSeveral(t *testing.T) {
	var out strings.Builder
	p := Stdout(&out)
	var partial *PartialError
	err := p.Send(t.Context(), []Record{{Line: []byte("a")}, {Line: []byte("b\nforged")}, {Line: []byte("c\rforged")}})
	if !errors.As(err, &partial) || partial.Failed != 2 || out.String() != "a\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	if err := p.Send(t.Context(), []Record{{Line: []byte("\n")}}); err == nil || out.String() != "a\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
