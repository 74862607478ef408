package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
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
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
