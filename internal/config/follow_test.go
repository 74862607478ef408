package config

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/patience"
)

// following runs Follow on a file in a bubble and counts what it is told.
type following struct {
	t       *testing.T
	file    string
	asked   chan struct{}
	reloads atomic.Int64
	stop    func()

	isRefused atomic.Bool // for what is around the file
}

func follow(t *testing.T, text string) *following {
	t.Helper()
	f := &following{t: t, file: filepath.Join(t.TempDir(), "proxy.yaml"), asked: make(chan struct{})}
	f.write(text)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		Follow(ctx, f.file, DigestOf(f.file), FollowOptions{Asked: f.asked}, func(bool) bool {
			f.reloads.Add(1)
			return f.isRefused.Load()
		})
	}()
	f.stop = func() { cancel(); <-done }
	synctest.Wait()
	return f
}

func (f *following) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// after lets time pass and says how many reloads there must have been since the start.
func (f *following) after(d time.Duration, want int) {
	f.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	if got := f.reloads.Load(); got != int64(want) {
		f.t.Errorf("%d reloads, want %d", got, want)
	}
}

func TestFollowTellsOfEachNewContentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "one")
		defer f.stop()
		f.after(time.Minute, 0)
		f.write("three")
		f.after(2*time.Second, 1)
		f.after(time.Minute, 1)
		if err := os.Remove(f.file); err != nil {
			t.Fatal(err)
		}
		f.after(2*time.Second, 2)
		f.after(time.Minute, 2)
		f.write("three")
		f.after(2*time.Second, 3)
	})
}

func TestFollowTriesAgainWhatWasRefusedForWhatIsAroundIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "one")
		defer f.stop()
		f.isRefused.Store(true)
		f.write("two")
		f.after(2*time.Second, 1)
		f.after(11*time.Second, 2) // what cannot be seen from here
		want := 2
		if runtime.GOOS != "windows" { // a mode is seen at once
			want++
			if err := os.Chmod(f.file, 0o644); err != nil {
				t.Fatal(err)
			}
			f.after(2*time.Second, want)
		}
		f.isRefused.Store(false)
		f.after(11*time.Second, want+1)
		f.after(time.Minute, want+1)
	})
}

func TestFollowSeesAChangeThatLooksLikeNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "one")
		defer f.stop()
		info, err := os.Stat(f.file)
		if err != nil {
			t.Fatal(err)
		}
		f.write("two")
		if err := os.Chtimes(f.file, time.Time{}, info.ModTime()); err != nil {
			t.Fatal(err)
		}
		f.after(11*time.Second, 1)
	})
}

func TestFollowIgnoresAFileThatIsWrittenAgainAsItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "one")
		defer f.stop()
		if err := os.Remove(f.file); err != nil {
			t.Fatal(err)
		}
		f.write("one")
		f.after(time.Minute, 0)
	})
}

func TestFollowWaitsUntilAFileIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "one")
		defer f.stop()
		f.write("o")
		f.after(1900*time.Millisecond, 0) // looked at, and not settled
		f.write("other")
		f.after(time.Second, 0)
		f.after(time.Second, 1)
		f.after(time.Minute, 1)
	})
}

func TestFollowReloadsWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "one")
		defer f.stop()
		f.asked <- struct{}{}
		f.after(0, 1)
		f.after(time.Minute, 1)
	})
}

func TestFollowSeesASwappedLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a Kubernetes volume on Windows is tested by hand: links take a privilege there")
	}
	synctest.Test(t, func(t *testing.T) {
		f := follow(t, "one")
		defer f.stop()
		dir := filepath.Dir(f.file)
		for _, text := range []string{"a", "b"} { // as the kubelet does: file -> ..data/file, ..data -> a directory
			version := filepath.Join(dir, "..v"+text)
			if err := os.Mkdir(version, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(version, "proxy.yaml"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		link := func(to, name string) {
			t.Helper()
			if err := os.Symlink(to, filepath.Join(dir, "new")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, "new"), name); err != nil {
				t.Fatal(err)
			}
		}
		link("..va", filepath.Join(dir, "..data"))
		link(filepath.Join("..data", "proxy.yaml"), f.file)
		f.after(2*time.Second, 1)
		link("..vb", filepath.Join(dir, "..data"))
		f.after(2*time.Second, 2)
	})
}

// A file on a network file system that was away kept the proxy from stopping, and nobody knew that it was not read any more.
func TestFollowTellsOfAFileThatKeepsItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		close(answers)
		var wait atomic.Pointer[chan struct{}]
		wait.Store(&answers)
		var content atomic.Pointer[Digest]
		one, two := digest([]byte("one")), digest([]byte("two"))
		content.Store(&one)
		var late, reloads atomic.Int64
		o := FollowOptions{Asked: make(chan struct{}, 1), Late: func(err error) {
			if late.Add(1); !errors.Is(err, patience.ErrLate) {
				t.Error(err)
			}
		}}.complete()
		f := follower{
			FollowOptions: o,
			content:       patience.New(o.Patience, func() (Digest, error) { d := *content.Load(); <-*wait.Load(); return d, nil }),
			outside:       patience.New(o.Patience, func() (appearance, error) { <-*wait.Load(); return appearance{}, nil }),
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.follow(ctx, one, func(bool) bool { reloads.Add(1); return false })
		}()
		is := func(what string, wantLate, wantReloads int64) {
			t.Helper()
			synctest.Wait()
			if late.Load() != wantLate || reloads.Load() != wantReloads {
				t.Errorf("%s: told %d times, reloaded %d times", what, late.Load(), reloads.Load())
			}
		}
		time.Sleep(time.Minute)
		is("nothing has changed", 0, 0)

		stuck := make(chan struct{})
		wait.Store(&stuck)
		time.Sleep(10 * time.Minute)
		is("it does not answer", 1, 0)
		content.Store(&two)
		wait.Store(&answers)
		close(stuck)
		time.Sleep(5 * time.Second)
		is("it answers, and is another one", 1, 1)

		stuck = make(chan struct{})
		wait.Store(&stuck)
		time.Sleep(5 * time.Second)
		cancel()
		<-done
		is("it was stopped meanwhile", 1, 1)
		close(stuck)
	})
}
