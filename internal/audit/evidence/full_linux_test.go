package evidence

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// A checkpoint is what tells of a log on a full disk.
func TestCheckpointsAreMadeOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: mounting a file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", 1<<20)); err != nil {
		t.Skipf("SKIPPED: mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	key, err := NewKey(Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(t.Context(), Options{Dir: filepath.Join(dir, "audit"), Keys: []*Key{key}})
	if err != nil {
		t.Fatal(err)
	}
	l.Append([32]byte{1})
	if err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	ballast, err := os.Create(filepath.Join(dir, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	for chunk := 1 << 20; chunk > 0; {
		if _, err := ballast.Write(make([]byte, chunk)); err != nil {
			chunk /= 2
		}
	}
	for i := range 200 {
		l.Append([32]byte{byte(i)})
		if err := l.Checkpoint(t.Context()); err != nil {
			t.Fatalf("checkpoint %d on a full disk: %v", i, err)
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	before := notesIn(t, l.o.Dir)
	f, err := os.OpenFile(l.notes.path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(Origin("node-1") + "\n9\n"); err != nil { // as a write leaves it that was cut short
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for { // what little the end of the process gave back
		if _, err := ballast.Write([]byte{0}); err != nil {
			break
		}
	}
	l.notes = &noteFile{path: l.notes.path}
	_, err = l.notes.thin(time.Now())
	if err != nil {
		t.Fatalf("a start on a full disk: %v", err)
	}
	if after := notesIn(t, l.o.Dir); after != before {
		t.Errorf("%d checkpoints, and %d before", after, before)
	}
	if err := errors.Join(l.notes.close(), ballast.Close()); err != nil {
		t.Error(err)
	}
}

// notesIn counts the checkpoints of a log, all of which are whole.
func notesIn(t *testing.T, dir string) (n int) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, CheckpointFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for note, err := range Notes(f) {
		if err != nil || note.IsOpen {
			t.Fatalf("checkpoint %d: %v", n, err)
		}
		n++
	}
	return n
}
