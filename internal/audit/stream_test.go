package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
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

func TestAppendRefusesAnEndedContext(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if seq, err := NewStream(&out).Append(ctx, request("a", StageRequestReceived, 0, "")); !errors.Is(err, context.Canceled) || seq != 0 || out.Len() > 0 {
		t.Errorf("number %d, error %v, %d bytes", seq, err, out.Len())
	}
}

func TestConcurrentAppendsKeepNumbersAndLinesInOrder(t *testing.T) {
	const writers, each = 8, 100
	var out bytes.Buffer
	s := NewStream(&out)
	seen := make(chan uint64, writers*each)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				seq, err := s.Append(context.Background(), request(fmt.Sprint(w, "/", i), StageResponseComplete, 0, ResultDenied))
				if err != nil {
					t.Error(err)
				}
				seen <- seq
			}
		})
	}
	group.Wait()
	close(seen)
	numbers := map[uint64]bool{}
	for seq := range seen {
		numbers[seq] = true
	}
	if len(numbers) != writers*each {
		t.Errorf("%d numbers for %d records", len(numbers), writers*each)
	}
	if r := report(t, out.String()); r.FaultCount != 0 || r.Terminals != writers*each {
		t.Errorf("report %+v", r)
	}
}
