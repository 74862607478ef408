//go:build unix

package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// Whoever copies a directory copies what is in it, and to open a named pipe waits until somebody writes to it.
func TestNamedPipesInALogBlockNoReader(t *testing.T) {
	for _, name := range []string{CheckpointFile, StartFile, "a segment", "the last segment"} {
		t.Run(name, func(t *testing.T) {
			m := sample(t)
			file := filepath.Join(m.dir, name)
			switch name {
			case "a segment":
				file = filepath.Join(m.dir, m.name())
			case "the last segment":
				segments, _ := paths(t, m)
				file = segments[2]
			}
			if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 2)
			go func() {
				r, err := Verify(context.Background(), VerifyOptions{Dir: m.dir, Keys: m.keys()})
				if err == nil && r.Verdict != VerdictTampered {
					err = errors.New(string(r.Verdict))
				}
				ended <- err
			}()
			go func() {
				_, err := Prove(context.Background(), VerifyOptions{Dir: m.dir, Keys: m.keys()}, 1)
				if err == nil {
					err = errors.New("proved")
				} else if IsFault(err) {
					err = nil
				}
				ended <- err
			}()
			for range 2 {
				select {
				case err := <-ended:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Fatal("it waits")
				}
			}
		})
	}
}

// What lies in the directory of a log is read, or the verification says that it is not.
func TestNothingInADirectoryIsPassedOverInSilence(t *testing.T) {
	kinds := map[string]func(file string) error{
		"empty": func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"text":  func(file string) error { return os.WriteFile(file, []byte("x"), 0o600) },
		"long":  func(file string) error { return os.WriteFile(file, bytes.Repeat([]byte("x\n"), 1<<12), 0o600) },
		"dir":   func(file string) error { return os.Mkdir(file, 0o700) },
		"link":  func(file string) error { return os.Symlink("checkpoints", file) },
		"fifo":  func(file string) error { return syscall.Mkfifo(file, 0o600) },
	}
	const behind = "-00000000-0000-4000-8000-ffffffffffff.jsonl"
	m := sample(t)
	last := m.seq
	type entry struct{ name, kind string }
	left := map[entry]bool{} // by a writer
	var names []string
	for _, seq := range []uint64{1, 2, last, last + 1, last + 2, last + 3, segment.MaxSeq} {
		names = append(names, fmt.Sprintf("audit-%020d%s", seq, behind))
	}
	left[entry{names[3], "empty"}], left[entry{names[4], "empty"}] = true, true
	for _, file := range []string{StartFile, CheckpointFile} {
		for _, kind := range []string{"empty", "text", "long"} {
			left[entry{"." + file + "-123", kind}] = true
		}
		names = append(names, "."+file+"-123", "."+file+"-", "."+file+"-x", "."+file+"-123.jsonl", "."+file, file+"-1")
	}
	names = append(names, names[3]+".gz", "audit-1.jsonl", "Audit-", ".lock-1", "notes", ".hidden")
	for _, name := range names {
		for kind, put := range kinds {
			file := filepath.Join(m.dir, name)
			if err := put(file); err != nil {
				t.Fatal(err)
			}
			r := verify(t, VerifyOptions{Dir: m.dir, Keys: m.keys(), Outside: []string{m.outside()}})
			said := strings.Join(append(r.Incomplete, r.Unused...), "\n")
			if r.Fault == nil && !strings.Contains(said, name) || (r.Verdict == VerdictOK) != left[entry{name, kind}] {
				t.Errorf("%s, %s: %s, %q", name, kind, r.Verdict, said)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The writer of a log opens the same files at its start, which must end with a message.
func TestAStartOverANamedPipeFailsAndDoesNotWait(t *testing.T) {
	for _, name := range []string{CheckpointFile, StartFile} {
		t.Run(name, func(t *testing.T) {
			m := sample(t)
			file := filepath.Join(m.dir, name)
			if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(file, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 2)
			go func() {
				_, err := LastSigned(m.dir, nil, nil)
				if name != CheckpointFile && err == nil {
					err = &Fault{}
				}
				ended <- err
			}()
			go func() {
				_, err := Open(context.Background(), Options{Dir: m.dir, Keys: []*Key{m.key}})
				ended <- err
			}()
			for range 2 {
				select {
				case err := <-ended:
					if !IsFault(err) {
						t.Errorf("got %v", err)
					}
				case <-time.After(time.Minute):
					t.Fatal("it waits")
				}
			}
		})
	}
}
