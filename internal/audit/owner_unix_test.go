//go:build unix

package audit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFileThatIsMovedAwayIsFollowedByANewOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	told := 0
	f, err := OpenFile(path, FileOptions{OnMoved: func(err error) {
		if told++; err != nil {
			t.Errorf("told of %v", err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	mustAppend(t, f, request("a", StageResponseComplete, 0, ResultDenied))
	old := path + ".1"
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, request("b", StageResponseComplete, 0, ResultDenied))
	if r := report(t, old); r.FaultCount != 0 || r.Terminals != 1 {
		t.Errorf("the old file: %+v", r)
	}
	if r := report(t, path); r.FaultCount != 0 || r.Terminals != 1 {
		t.Errorf("the new file: %+v", r)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, request("c", StageResponseComplete, 0, ResultDenied))
	if r := report(t, path); r.FaultCount != 0 || r.Terminals != 1 {
		t.Errorf("after a removal: %+v", r)
	}
	if told != 2 {
		t.Errorf("told %d times, want 2", told)
	}
}

func TestRecordsAreRefusedWhenSomethingElseIsAtThePath(t *testing.T) {
	f, path, _ := openDisk(t)
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	other, err := OpenFile(path, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Append(t.Context(), request("a", StageRequestReceived, 0, "")); !errors.Is(err, ErrInUse) {
		t.Errorf("another writer is at the path: %v", err)
	}
	if err := errors.Join(other.Close(), os.Remove(path), os.Symlink(path+".1", path)); err != nil {
		t.Fatal(err)
	}
	if err := f.Reopen(); err == nil {
		t.Error("a link at the path was followed")
	}
}

func TestLinksAndSharedFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	link, dangling, shared, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "shared"), filepath.Join(dir, "fifo")
	err := errors.Join(os.WriteFile(target, nil, 0o600), os.Symlink(target, link), os.Symlink(filepath.Join(dir, "none"), dangling),
		os.WriteFile(shared, nil, 0o600), os.Chmod(shared, 0o620), syscall.Mkfifo(fifo, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, dangling, shared, fifo} {
		if f, err := OpenFile(path, FileOptions{}); err == nil {
			t.Errorf("%s was opened", filepath.Base(path))
			_ = f.Close()
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "none")); err == nil {
		t.Error("a file was made through a link")
	}
}

// A disk that fills up takes a part of each record. The log must read well when it has room again.
func TestRepeatedAttemptsOnAFullDiskLeaveNoFault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	full := false
	f, err := OpenFile(path, FileOptions{open: func(path string) (handle, error) {
		h, err := openAppend(path)
		if err != nil {
			return nil, err
		}
		d := &disk{File: h.(*os.File)}
		d.write = func(b []byte) (int, error) {
			if !full {
				return d.File.Write(b)
			}
			n, err := d.File.Write(b[:7])
			return n, errors.Join(err, syscall.ENOSPC)
		}
		return d, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	full = true
	if _, err := f.Append(t.Context(), request("a", StageRequestReceived, 0, "")); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got %v", err)
	}
	for range 3 {
		if err := f.Reopen(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("reopen: %v", err)
		}
	}
	full = false
	if err := f.Reopen(); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, f, request("b", StageResponseComplete, 0, ResultDenied))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if r := report(t, path); r.FaultCount != 0 || r.TornTail || r.Terminals != 1 {
		t.Errorf("report %+v", r)
	}
}
