package audit

import (
	"bytes"
	"io"
	"testing"
)

// flaky writes as many bytes as it is told and then fails.
type flaky struct {
	bytes.Buffer
	limits []int // bytes of the next writes; then all
}

func (f *flaky) Write(b []byte) (int, error) {
	if len(f.limits) == 0 {
		return f.Buffer.Write(b)
	}
	limit := f.limits[0]
	f.limits = f.limits[1:]
	n, _ := f.Buffer.Write(b[:limit])
	return n, io.ErrClosedPipe
}

func TestStreamGoesOnAfterAFailure(t *testing.T) {
	out := &flaky{limits: []int{0, 10, 1, 0}} // nothing; half a line; only the newline that ends it; nothing
	s := NewStream(out)
	for range 4 {
		if _, err := s.Append(t.Context(), request("lost", StageResponseComplete, 0, ResultDenied)); err == nil {
			t.Error("no error")
		}
	}
	if seq := mustAppend(t, s, request("kept", StageResponseComplete, 0, ResultDenied)); seq != 5 {
		t.Errorf("number %d, want 5: the gap tells of the loss", seq)
	}
	var records, bad int
	for e, err := range read(out.String()) {
		switch {
		case err != nil:
			bad++
		case e.ID != "kept" || e.Seq != 5:
			t.Errorf("record %+v", e)
		default:
			records++
		}
	}
	if records != 1 || bad != 1 {
		t.Errorf("%d records, %d lines that are none", records, bad)
	}
}
