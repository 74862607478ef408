package audit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// disk is a file that fails when it is told to.
type disk struct {
	*os.File
	mu    sync.Mutex
	write func([]byte) (int, error) // replaces Write
	sync  error
}

func (d *disk) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.write != nil {
		return d.write(b)
	}
	return d.File.Write(b)
}

func (d *disk) Sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sync
}

func (d *disk) set(write func([]byte) (int, error), sync error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.write, d.sync = write, sync
}

// openDisk opens a log whose disks, one for each session, can be made to fail.
func openDisk(t *testing.T) (f *File, path string, disks *[]*disk) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "logs", "audit.jsonl")
	disks = new([]*disk)
	f, err := OpenFile(path, FileOptions{open: func(path string) (handle, error) {
		h, err := openAppend(path)
		if err != nil {
			return nil, err
		}
		d := &disk{File: h.(*os.File)}
		*disks = append(*disks, d)
		return d, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, path, disks
}

func request(id string, stage Stage, intent uint64, result string) *Event {
	e := &Event{Type: TypeRequest, Stage: stage, ID: id, IntentSeq: intent}
	if result != "" {
		e.Outcome = &Outcome{Result: result, Code: "OK"}
	}
	return e
}

// report reads a log and reconciles it.
func report(t *testing.T, path string) Report {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := reconcile(read(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mustAppend(t *testing.T, w Writer, e *Event) uint64 {
	t.Helper()
	seq, err := w.Append(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func TestFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing on Windows: the directory's access list decides")
	}
	_, path, _ := openDisk(t)
	for name, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

func TestSessionsFollowEachOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 3 {
		f, err := OpenFile(path, FileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		seq := mustAppend(t, f, request("a", StageRequestReceived, 0, ""))
		if seq != 2 {
			t.Errorf("the first record after LogOpen has number %d", seq)
		}
		mustAppend(t, f, &Event{Type: TypeRequest, Stage: StageResponseComplete, ID: "a", IntentSeq: seq, Outcome: &Outcome{Result: ResultOK}})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Append(t.Context(), request("b", StageRequestReceived, 0, "")); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	r := report(t, path)
	if r.Sessions != 3 || r.Records != 12 {
		t.Errorf("report %+v", r)
	}
	// The id was used in each session; that is what must be noticed, and nothing else.
	if r.FaultCount != 4 {
		t.Errorf("faults %v", r.Faults)
	}
}

func TestFailureEndsTheSessionUntilReopen(t *testing.T) {
	for name, fail := range map[string]func(*disk){
		"a full disk": func(d *disk) { d.set(func([]byte) (int, error) { return 0, syscall.ENOSPC }, nil) },
		"half a line": func(d *disk) {
			d.set(func(b []byte) (int, error) { n, _ := d.File.Write(b[:len(b)/2]); return n, syscall.ENOSPC }, nil)
		},
		"a short write without an error": func(d *disk) {
			d.set(func(b []byte) (int, error) { n, _ := d.File.Write(b[:len(b)-1]); return n, nil }, nil)
		},
		"a failed fsync": func(d *disk) { d.set(nil, syscall.EIO) },
	} {
		t.Run(name, func(t *testing.T) {
			f, path, disks := openDisk(t)
			intent := mustAppend(t, f, request("a", StageRequestReceived, 0, ""))
			fail((*disks)[0])
			end := request("a", StageResponseComplete, intent, ResultOK)
			if seq, err := f.Append(t.Context(), end); err == nil || seq != intent+1 {
				t.Fatalf("append: number %d, error %v", seq, err)
			}
			(*disks)[0].set(nil, nil) // the disk works again, but what it holds is in doubt
			if _, err := f.Append(t.Context(), end); err == nil {
				t.Fatal("a session that failed took another record")
			}
			if f.Err() == nil {
				t.Error("Err is nil")
			}
			if err := f.Reopen(); err != nil {
				t.Fatal(err)
			}
			end.Again = true
			mustAppend(t, f, end)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if r := report(t, path); r.FaultCount != 0 || len(r.Open) != 0 || r.Sessions != 2 || r.Terminals != 1 {
				t.Errorf("report %+v", r)
			}
		})
	}
}

func TestReopenOfAWorkingFileDoesNothing(t *testing.T) {
	f, path, disks := openDisk(t)
	if err := f.Reopen(); err != nil || len(*disks) != 1 {
		t.Errorf("error %v, %d sessions", err, len(*disks))
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a closed file: %v", err)
	}
	if r := report(t, path); r.FaultCount != 0 || r.Sessions != 1 {
		t.Errorf("report %+v", r)
	}
}

func TestReopenThatFailsKeepsRefusing(t *testing.T) {
	var d *disk
	gone := false
	f, err := OpenFile(filepath.Join(t.TempDir(), "audit.jsonl"), FileOptions{open: func(path string) (handle, error) {
		if gone {
			return nil, syscall.EIO
		}
		h, err := openAppend(path)
		if err != nil {
			return nil, err
		}
		d = &disk{File: h.(*os.File)}
		return d, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	d.set(nil, syscall.EIO)
	gone = true
	if _, err := f.Append(t.Context(), request("a", StageRequestReceived, 0, "")); err == nil {
		t.Fatal("no error")
	}
	if err := f.Reopen(); !errors.Is(err, syscall.EIO) {
		t.Fatalf("reopened on a disk that is gone: %v", err)
	}
	if _, err := f.Append(t.Context(), request("a", StageRequestReceived, 0, "")); err == nil {
		t.Error("a record was taken by a log that is not open")
	}
	gone = false
	if err := f.Reopen(); err != nil {
		t.Fatalf("the disk is back: %v", err)
	}
	if _, err := f.Append(t.Context(), request("a", StageRequestReceived, 0, "")); err != nil {
		t.Errorf("the disk is back: %v", err)
	}
}

func TestTornTailOfACrashIsDeclared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	first, err := OpenFile(path, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, first, request("a", StageResponseComplete, 0, ResultDenied))
	// No Close: the process dies while it writes.
	if _, err := first.file.Write([]byte(`{"v":1,"seq":3,"type":"requ`)); err != nil {
		t.Fatal(err)
	}
	if err := first.file.Close(); err != nil {
		t.Fatal(err)
	}
	if r := report(t, path); !r.TornTail || r.FaultCount != 0 {
		t.Errorf("before the next start: %+v", r)
	}
	second, err := OpenFile(path, FileOptions{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, second, request("b", StageResponseComplete, 0, ResultDenied))
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if r := report(t, path); r.TornTail || r.FaultCount != 0 || r.Terminals != 2 {
		t.Errorf("after it: %+v", r)
	}
}

func TestOpenFileRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, err := OpenFile(dir, FileOptions{}); err == nil {
		t.Error("a directory was opened as a log")
	}
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(filepath.Join(blocked, "audit.jsonl"), FileOptions{}); err == nil {
		t.Error("a log was opened beneath a file")
	}
	_, err := OpenFile(filepath.Join(dir, "audit.jsonl"), FileOptions{open: func(path string) (handle, error) {
		h, err := openAppend(path)
		return &disk{File: h.(*os.File), sync: syscall.EIO}, err
	}})
	if !errors.Is(err, syscall.EIO) {
		t.Errorf("a log whose first record is not durable: %v", err)
	}
}

func TestAppendRefusesAnEndedContext(t *testing.T) {
	f, path, _ := openDisk(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, w := range []Writer{f, NewStream(os.Stderr)} {
		if seq, err := w.Append(ctx, request("a", StageRequestReceived, 0, "")); !errors.Is(err, context.Canceled) || seq != 0 {
			t.Errorf("%T: number %d, error %v", w, seq, err)
		}
	}
	if r := report(t, path); r.Records != 1 {
		t.Errorf("report %+v", r)
	}
}

func TestConcurrentAppendsKeepNumbersAndLinesInOrder(t *testing.T) {
	f, path, _ := openDisk(t)
	const writers, each = 8, 100
	seen := make(chan uint64, writers*each)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				seq, err := f.Append(context.Background(), request(string(rune('A'+w))+string(rune('0'+i)), StageResponseComplete, 0, ResultDenied))
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
	if r := report(t, path); r.FaultCount != 0 || r.Terminals != writers*each {
		t.Errorf("report %+v", r)
	}
}

func TestKeepReopensWhenTheDiskIsBack(t *testing.T) {
	f, _, disks := openDisk(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		attempts := make(chan error)
		go f.Keep(ctx, time.Minute, func(err error) { attempts <- err })
		(*disks)[0].set(nil, syscall.EIO)
		if _, err := f.Append(ctx, request("a", StageRequestReceived, 0, "")); err == nil {
			t.Fatal("no error")
		}
		began := time.Now()
		if err := <-attempts; err != nil {
			t.Errorf("reopen: %v", err)
		}
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("tried after %v", waited)
		}
		mustAppend(t, f, request("b", StageResponseComplete, 0, ResultDenied))
		cancel()
		synctest.Wait()
	})
}
