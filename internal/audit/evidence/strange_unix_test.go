//go:build unix

package evidence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Whoever copies a directory copies what is in it, and to open a named pipe waits until somebody writes to it.
func TestNamedPipesInALogHoldNobodyUp(t *testing.T) {
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
				_, err := LastCheckpoint(m.dir)
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
