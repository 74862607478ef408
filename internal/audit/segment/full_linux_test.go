package segment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// tmpfs mounts a file system of this many bytes for the test.
func tmpfs(t *testing.T, size int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: mounting a file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		t.Skipf("SKIPPED: mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes what room there is.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for chunk := 1 << 20; chunk > 0; {
		if _, err := file.Write(make([]byte, chunk)); err != nil {
			chunk /= 2
		}
	}
}

func TestNoOperationRunsWithoutItsIntentOnARealFullDisk(t *testing.T) {
	dir := tmpfs(t, 3<<20)
	w, err := Open(t.Context(), filepath.Join(dir, "audit"), Options{Admitted: 16, SegmentBytes: 256 << 10, Retry: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	disk, l := w.log.disk, newLedger()
	ballast := filepath.Join(dir, "ballast")
	for round := range 3 {
		var running sync.WaitGroup
		var mu sync.Mutex // guards l
		for c := range 16 {
			running.Go(func() {
				for i := 0; ; i++ {
					id := fmt.Sprintf("%d-%d-%d", round, c, i)
					seq, err := w.Append(context.Background(), request(id, audit.StageRequestReceived, 0))
					if err != nil {
						if !errors.Is(err, ErrFull) || !errors.Is(err, syscall.ENOSPC) {
							t.Errorf("refused with %v", err)
						}
						return
					}
					if c == 0 && i == 10 {
						fill(t, ballast)
					}
					end, err := w.Append(context.Background(), request(id, audit.StageResponseComplete, seq))
					if err != nil {
						t.Errorf("the end of an operation that was admitted: %v", err)
						return
					}
					mu.Lock()
					l.acknowledged[id+"/RequestReceived"], l.acknowledged[id+"/ResponseComplete"] = seq, end
					mu.Unlock()
				}
			})
		}
		running.Wait()
		if s := w.Stats(); s.Poisoned != 0 || s.Open != 0 || !errors.Is(s.Err, ErrFull) {
			t.Errorf("%+v", s)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		if round == 2 {
			break
		}
		l.call(t, w, fmt.Sprint("recovered-", round))
		if l.acknowledged[fmt.Sprint("recovered-", round, "/ResponseComplete")] == 0 {
			t.Error("there is room again, and calls are refused")
		}
	}
	shut(t, w)
	events := records(t, disk)
	l.judge(t, events)
	settled(t, events)
	t.Logf("%d calls, %d records, %d segments", len(l.acknowledged)/2, len(events), w.Stats().Segments)
}

func TestAllocationIsGivenBackAndTakesNothingOfTheFile(t *testing.T) {
	dir := t.TempDir()
	w, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, current(w))
	mustAppend(t, w, request("a", audit.StageRequestReceived, 0))
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := func() int64 {
		var s syscall.Stat_t
		if err := syscall.Stat(path, &s); err != nil {
			t.Fatal(err)
		}
		return s.Blocks * 512
	}
	isUnreserved := false
	whileFree(w, func(l *log) { isUnreserved = l.unreserved })
	if isUnreserved {
		t.Skip("SKIPPED: this file system reserves no space")
	}
	if n := blocks(); n < step {
		t.Errorf("%d bytes are reserved", n)
	}
	whileFree(w, func(l *log) { l.file.Close() }) // as a process that is killed
	if err := w.log.disk.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, again)
	if n := blocks(); n > 64<<10 {
		t.Errorf("%d bytes stay reserved behind a segment that nobody writes to", n)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the segment was changed: %v", err)
	}
	whileFree(w, func(l *log) { l.disk = newMemory() }) // the first writer is to end without touching what is not its own any more
	_ = w.Close()
}
