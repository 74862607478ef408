package audit

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/test/audit/evidencetest"
	"github.com/pipeguard/pipeguard/test/harness"
)

// mostMemory is what a command that reads a log may take of it, however long that is.
const mostMemory = 192 << 20

// The commands read a log of any length in the same memory. PIPEGUARD_LONG_LOG sets its length in bytes; the log is then written by the real
// writer, every record another one, into PIPEGUARD_LONG_DIR if that is set, where it stays.
func TestReadingALongLogTakesBoundedMemory(t *testing.T) {
	length := int64(6 << 20)
	if text := os.Getenv("PIPEGUARD_LONG_LOG"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		length = n
	}
	program, err := harness.Build(t.Context(), t.TempDir(), "./cmd/pipeguard")
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv("PIPEGUARD_LONG_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	log, key, outside := filepath.Join(dir, "log"), filepath.Join(dir, "key.pub"), filepath.Join(dir, "outside")
	if _, err := os.Stat(outside); err != nil {
		writeLong(t, log, key, outside, length)
	}
	records, measured := uint64(0), 0
	for _, args := range [][]string{
		{"verify", log, "--keys", key, "--checkpoint", outside},
		{"check", log},
		{"search", log, "--id", "R7", "-o", "jsonl"},
		{"search", log, "--path", `C:\var\lib\kubelet`, "--count"},
		{"stats", log, "--by", "caller,method"},
		{"stats", log, "--by", "id"},
		{"show", log, "R7"},
		{"tail", log, "-n", "100"},
		{"export", log, "--format", "csv"},
		{"hunt", log},
		{"report", log, "-o", filepath.Join(t.TempDir(), "report.html"), "--keys", key, "--checkpoint", outside},
	} {
		cmd := exec.Command(program, append([]string{"audit"}, args...)...) //nolint:gosec // our own program
		cmd.Stdout = io.Discard
		var said tailOf
		cmd.Stderr = &said
		began := time.Now()
		peak, err := runMeasured(cmd)
		took := time.Since(began)
		if err != nil {
			t.Errorf("audit %s: %v %s", args[0], err, said.text)
			continue
		}
		if args[0] == "verify" {
			head, err := evidence.LastSigned(log, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			records = head.Size
		}
		t.Logf("%-32.32s %8.0f records/s, CPU %6.1f s, peak RSS %4d MiB", strings.Join(append(args[:1:1], args[2:]...), " "), float64(records)/took.Seconds(), (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), peak>>20)
		if peak > 0 {
			measured++
		}
		if peak > mostMemory {
			t.Errorf("audit %s takes %d bytes of memory for a log of %d records", args[0], peak, records)
		}
	}
	t.Logf("%d records", records)
	if measured < 5 { // a busy machine may let one end unseen
		t.Errorf("the memory of only %d commands was measured", measured)
	}
}

var highWater = regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`)

// runMeasured runs a program and returns the most memory that it had, in bytes, as the kernel told it a moment before the end. What the
// kernel tells afterwards (ru_maxrss) counts this process too, from which the program was forked.
func runMeasured(cmd *exec.Cmd) (peak int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	status := filepath.Join("/proc", strconv.Itoa(cmd.Process.Pid), "status")
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-time.After(time.Millisecond):
		}
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(status), "exe"))
		text, _ := os.ReadFile(status) //nolint:gosec // of the kernel
		if found := highWater.FindSubmatch(text); found != nil && exe == cmd.Path {
			kB, _ := strconv.ParseInt(string(found[1]), 10, 64)
			peak = max(peak, kB<<10)
		}
	}
}

// tailOf keeps the beginning of what a program says, for a test that fails.
type tailOf struct{ text []byte }

func (w *tailOf) Write(p []byte) (int, error) {
	w.text = append(w.text, p[:min(len(p), max(0, 1000-len(w.text)))]...)
	return len(p), nil
}

// writeLong writes a log of about so many bytes in segments of the usual length.
func writeLong(t *testing.T, dir, keyFile, outside string, length int64) {
	t.Helper()
	key, err := evidence.NewKey(evidence.Origin("node-1"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, keyFile, []byte(key.LogKey()+"\n"))
	var kept *evidence.Log
	var mu sync.Mutex // guards written
	var written int64
	w, err := segment.Open(t.Context(), dir, segment.Options{
		NoSync: true, OnFault: func(err error) { t.Error(err) },
		OnRecord: func(line []byte) { mu.Lock(); written += int64(len(line)); mu.Unlock() },
		Evidence: func(*segment.Found) (segment.Evidence, error) {
			kept, err = evidence.Open(context.Background(), evidence.Options{Dir: dir, Keys: []*evidence.Key{key}})
			return kept, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	isEnough := func() bool { mu.Lock(); defer mu.Unlock(); return written >= length }
	var writers sync.WaitGroup
	const callers = 64
	for caller := range callers {
		writers.Go(func() {
			for i := caller; !isEnough(); i += callers {
				e := event(i)
				if e.Type == audit.TypeRequest { // the end of an operation, which has an intent
					intent := *e
					intent.Stage, intent.Outcome = audit.StageRequestReceived, nil
					seq, err := w.Append(t.Context(), &intent)
					if e.IntentSeq = seq; err != nil {
						t.Error(err)
						return
					}
				}
				if _, err := w.Append(t.Context(), e); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	if err := errors.Join(w.Close(), kept.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(evidencetest.Elsewhere(t, dir, key))
	if err != nil {
		t.Fatal(err)
	}
	put(t, outside, text)
}
