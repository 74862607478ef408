//go:build unix

package segment

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestTheDirectoryIsMadePrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	dir := filepath.Join(t.TempDir(), "audit")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, w)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, lockName): 0o600, filepath.Join(dir, current(w)): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestDirectoriesThatOthersDecideAboutAreRefused(t *testing.T) {
	base := t.TempDir()
	path := func(name string) string { return filepath.Join(base, name) }
	err := errors.Join(os.Mkdir(path("real"), 0o700), os.Symlink(path("real"), path("link")), os.WriteFile(path("file"), nil, 0o600),
		os.Symlink(path("none"), path("dangling")), os.Mkdir(path("planted"), 0o700), os.Symlink(path("none"), filepath.Join(path("planted"), lockName)),
		os.Mkdir(path("fifo"), 0o700), syscall.Mkfifo(filepath.Join(path("fifo"), Name(1)), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "file", "dangling", "planted"} {
		if w, err := Open(t.Context(), path(name), Options{}); err == nil {
			t.Errorf("%s was taken", name)
			shut(t, w)
		}
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Mkdir(path("theirs"), 0o777), os.Chown(path("theirs"), 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		if w, err := Open(t.Context(), path("theirs"), Options{}); err == nil {
			t.Error("another account's directory was taken")
			shut(t, w)
		}
	}
	if _, err := os.Lstat(path("none")); err == nil {
		t.Error("a file was made through a link")
	}
	w, err := Open(t.Context(), path("fifo"), Options{}) // what is no file is no segment, and is not waited for
	if err != nil {
		t.Fatal(err)
	}
	shut(t, w)
}

func TestASegmentThatIsTakenAwayIsFollowedByAnother(t *testing.T) {
	for name, isIdle := range map[string]bool{"with records": false, "without": true} {
		t.Run(name, func(t *testing.T) {
			dir, elsewhere := t.TempDir(), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w, err := Open(t.Context(), dir, Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer shut(t, w)
				gone, last := current(w), uint64(1)
				if err := os.Rename(filepath.Join(dir, gone), filepath.Join(elsewhere, "taken")); err != nil {
					t.Fatal(err)
				}
				if !isIdle { // the directory was looked at just before
					last = mustAppend(t, w, request("early", audit.StageResponseComplete, 0))
				}
				time.Sleep(tick)
				synctest.Wait()
				if isIdle && w.Stats().Seq != last+1 {
					t.Error("an idle log was not looked at")
				}
				seq := mustAppend(t, w, request("a", audit.StageResponseComplete, 0))
				events := records(t, w.log.disk)
				if len(events) != 2 || events[0].Log.Cause != audit.CauseMissing || events[0].Log.PreviousSegment != gone || events[0].Log.PreviousSeq != last || events[1].Seq != seq || seq != last+2 {
					t.Errorf("%+v", events)
				}
			})
		})
	}
}

func TestAWriterWhoseLockIsTakenAwayWritesNoMore(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w, err := Open(t.Context(), dir, Options{Retry: time.Nanosecond})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, lockName)); err != nil {
			t.Fatal(err)
		}
		other, err := Open(t.Context(), dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(tick)
		for range 2 {
			if _, err := w.Append(context.Background(), request("a", audit.StageRequestReceived, 0)); !errors.Is(err, errNotOwner) {
				t.Errorf("got %v", err)
			}
		}
		mustAppend(t, other, request("b", audit.StageResponseComplete, 0))
		if err := w.Close(); err == nil {
			t.Error("closed as if in order")
		}
		shut(t, other)
		records(t, other.log.disk)
	})
}
