package segment

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestADirectoryHasOneWriter(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "audit")
	w, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a second writer: %v", err)
	}
	l := newLedger()
	l.call(t, w, "a")
	shut(t, w)
	if _, err := Open(t.Context(), dir, Options{OnFailure: "hope"}); err == nil {
		t.Error("an unknown answer was taken")
	}
	w, err = Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatalf("after the first has gone: %v", err)
	}
	d := w.log.disk
	l.call(t, w, "b")
	l.judge(t, records(t, d))
	shut(t, w)
	if _, err := w.Append(t.Context(), request("c", audit.StageRequestReceived, 0)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
}

func TestRecordsOfAnySizeFitTheirBound(t *testing.T) {
	disk := newMemory()
	w := open(t, disk, Options{})
	for n := 7000; n < 8200; n += 3 {
		e := request("long", audit.StageResponseComplete, 0)
		e.What, e.Again = &audit.What{FullMethod: string(make([]byte, n/6))}, true
		mustAppend(t, w, e)
	}
	shut(t, w)
	if n := len(records(t, disk)); n != 402 { // every line was short enough to be read
		t.Errorf("%d records", n)
	}
}
