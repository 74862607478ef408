package audit

import (
	"errors"
	"testing"
)

func TestSecondWriterIsRefused(t *testing.T) {
	f, path, _ := openDisk(t)
	if _, err := OpenFile(path, FileOptions{}); !errors.Is(err, ErrInUse) {
		t.Errorf("while it is open: %v", err)
	}
	mustAppend(t, f, request("a", StageResponseComplete, 0, ResultDenied))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := OpenFile(path, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if r := report(t, path); r.FaultCount != 0 || r.Sessions != 2 {
		t.Errorf("report %+v", r)
	}
}
