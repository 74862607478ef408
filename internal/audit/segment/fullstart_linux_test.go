package segment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

const (
	fullDirEnv  = "PIPEGUARD_TEST_FULL_DIR"
	fullKindEnv = "PIPEGUARD_TEST_FULL_KIND"
)

// readKey reads the key beside a log.
func readKey(t *testing.T, dir string) *evidence.Key {
	t.Helper()
	key, err := evidence.ReadKey(filepath.Join(dir, "audit.key"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// startIn starts the log of a directory, as the proxy does.
func startIn(t *testing.T, dir string, key *evidence.Key) (w *segment.Writer, tree *evidence.Log, err error) {
	t.Helper()
	log := filepath.Join(dir, "log")
	last, err := evidence.LastSigned(log, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err = segment.Open(t.Context(), log, segment.Options{
		SegmentBytes: 256 << 10, Covered: last.Size, Fits: evidence.Fits(log, last.Head),
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			tree, err = evidence.Open(context.Background(), evidence.Options{Dir: log, Keys: []*evidence.Key{key}})
			return tree, err
		},
	})
	return w, tree, err
}

// smallDisk mounts a file system of so many bytes.
func smallDisk(t *testing.T, size int) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: mounting a file system needs root")
	}
	dir = t.TempDir()
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

// TestFillTheDiskUntilKilled is the process that is killed.
func TestFillTheDiskUntilKilled(t *testing.T) {
	dir := os.Getenv(fullDirEnv)
	if dir == "" {
		t.Skip("only for the test that kills it")
	}
	_, isFirst := os.Stat(filepath.Join(dir, "log"))
	w, tree, err := startIn(t, dir, readKey(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 300 && isFirst != nil; i++ { // so that the file of checkpoints is of some size
		if err := tree.Checkpoint(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	isCall := os.Getenv(fullKindEnv) == "calls"
	for i := 0; ; i++ {
		e := &audit.Event{Type: audit.TypeConnection, Stage: audit.StageConnectionClosed, ID: fmt.Sprint(i), Outcome: &audit.Outcome{Result: audit.ResultIdle, Error: strings.Repeat("x", 4000)}}
		if isCall {
			e = &audit.Event{Type: audit.TypeRequest, Stage: audit.StageRequestReceived, ID: fmt.Sprint(i), What: &audit.What{Pipe: strings.Repeat("x", 4000)}}
		}
		_, err := w.Append(segment.OfStranger(t.Context()), e)
		if errors.Is(err, segment.ErrRefusals) || errors.Is(err, segment.ErrFull) || errors.Is(err, segment.ErrBusy) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fmt.Println("full")
	time.Sleep(time.Minute) // should the test have gone
}

// No caller can write so much that the next start has no room, not even after a kill.
func TestALogThatHasFilledItsDiskStartsAgain(t *testing.T) {
	for _, kind := range []string{"refusals", "calls"} {
		t.Run(kind, func(t *testing.T) {
			dir := smallDisk(t, 3<<20)
			key, err := evidence.NewKey(evidence.Origin("node-1"))
			if err != nil {
				t.Fatal(err)
			}
			if err := evidence.WriteKey(filepath.Join(dir, "audit.key"), key); err != nil {
				t.Fatal(err)
			}
			for range 12 { // the second and later ones write nothing but that they began
				cmd := exec.Command(os.Args[0], "-test.run=^TestFillTheDiskUntilKilled$")
				cmd.Env = append(os.Environ(), fullDirEnv+"="+dir, fullKindEnv+"="+kind)
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				said := make([]byte, 4096)
				n, _ := out.Read(said)
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				if !strings.Contains(string(said[:n]), "full") {
					t.Fatalf("the process said %q", said[:n])
				}
			}
			w, tree, err := startIn(t, dir, key)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(w.Close(), tree.Close(context.Background())); err != nil {
				t.Error(err)
			}
		})
	}
}
