package segment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// gatedDisk holds flushes up.
type gatedDisk struct {
	*memory
	held atomic.Pointer[chan struct{}] // each flush takes a value of it; nil lets all pass
}

// hold makes flushes wait, each until one more is let go.
func (d *gatedDisk) hold() (letGo func()) {
	gate := make(chan struct{})
	d.held.Store(&gate)
	return func() { gate <- struct{}{} }
}

func (d *gatedDisk) Create(name string) (File, error) {
	f, err := d.memory.Create(name)
	return gatedFile{f, d}, err
}

type gatedFile struct {
	File
	disk *gatedDisk
}

func (f gatedFile) Sync() error {
	if gate := f.disk.held.Load(); gate != nil {
		<-*gate
	}
	return f.File.Sync()
}

func TestCallersShareAFlushAndTheNextBeginsBeforeTheyGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedDisk{memory: newMemory()}
		w := open(t, disk, Options{})
		before := w.Stats().Flushes
		letGo := disk.hold()
		var running sync.WaitGroup
		numbers := make([]uint64, 5)
		call := func(i int, ctx context.Context) {
			running.Go(func() {
				var err error
				if numbers[i], err = w.Append(ctx, request(fmt.Sprint(i), audit.StageRequestReceived, 0)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		call(0, t.Context())
		call(1, t.Context())
		leaving, leave := context.WithCancel(t.Context())
		call(2, leaving)
		leave() // its record is on the way
		synctest.Wait()
		if slices.Max(numbers) != 0 {
			t.Fatalf("%v before a flush", numbers)
		}
		letGo() // of the first caller
		synctest.Wait()
		if numbers[0] == 0 || numbers[1] != 0 {
			t.Fatalf("%v after the flush of the first", numbers)
		}
		call(3, t.Context()) // while the second caller leads
		letGo()
		synctest.Wait()
		if numbers[1] != numbers[0]+1 || numbers[2] != numbers[0]+2 || numbers[3] != 0 {
			t.Fatalf("%v after the second flush", numbers)
		}
		letGo()
		running.Wait()
		if n := w.Stats().Flushes - before; n != 3 {
			t.Errorf("%d flushes of 4 records", n)
		}
		disk.held.Store(nil)
		call(4, t.Context()) // the log is free again
		shut(t, w)
		if events := records(t, disk); len(events) != 7 || events[numbers[2]-1].ID != "2" || numbers[4] != numbers[3]+1 {
			t.Errorf("%v of %d records", numbers, len(events))
		}
	})
}

func TestWhoWaitsWhenTheLogIsClosedIsInItAndNobodyAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &gatedDisk{memory: newMemory()}
		w := open(t, disk, Options{})
		letGo := disk.hold()
		var running sync.WaitGroup
		var acknowledged atomic.Int32
		call := func(id string) {
			running.Go(func() {
				if _, err := w.Append(t.Context(), request(id, audit.StageResponseComplete, 0)); err == nil {
					acknowledged.Add(1)
				} else if !errors.Is(err, fs.ErrClosed) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		call("leads")
		call("waits")
		time.Sleep(tick) // the keeper waits for a turn too
		synctest.Wait()
		running.Go(func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		call("late")
		for range 3 { // two callers, and the end of the segment
			letGo()
		}
		running.Wait()
		if n := acknowledged.Load(); n != 2 {
			t.Errorf("%d records were acknowledged", n)
		}
		events := records(t, disk)
		if last := events[len(events)-1]; len(events) != 4 || last.Stage != audit.StageLogClose {
			t.Errorf("%d records, the last one is %+v", len(events), last)
		}
	})
}

func TestTheKeeperIsNextUnlessTheLogIsBeingClosed(t *testing.T) {
	for name, isClosed := range map[string]bool{"open": false, "closed": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns := turns{keeper: make(chan struct{}, 1)}
				first, second := &pending{told: make(chan news, 1)}, &pending{told: make(chan news, 1)}
				if isLeader, isOpen := turns.join(first); !isLeader || !isOpen {
					t.Error("the first does not lead")
				}
				if batch := turns.take(nil); len(batch) != 1 || batch[0] != first {
					t.Error(batch)
				}
				if isLeader, _ := turns.join(second); isLeader {
					t.Error("the second leads too")
				}
				kept := false
				go turns.own(func() { kept = true })
				synctest.Wait()
				if isClosed {
					turns.close()
				}
				if kept {
					t.Error("the keeper did not wait")
				}
				turns.handOn()
				synctest.Wait()
				if kept == isClosed {
					t.Errorf("before the caller that waits: %v", kept)
				}
				if <-second.told != leads || len(turns.take(nil)) != 1 {
					t.Error("the second does not lead")
				}
				turns.handOn()
				synctest.Wait()
				if !kept || turns.owned {
					t.Errorf("in the end: %v, %v", kept, turns.owned)
				}
			})
		})
	}
}

const panickingEnv = "PIPEGUARD_TEST_SEGMENT_PANIC"

// TestPanicUnderACaller is a process whose callers recover from panics, as servers do.
func TestPanicUnderACaller(t *testing.T) {
	if os.Getenv(panickingEnv) == "" {
		t.Skip("only for the test that starts it")
	}
	w := open(t, newMemory(), Options{OnRecord: func(line []byte) {
		if strings.Contains(string(line), `"id":"bad"`) {
			panic("what is in the log is not known")
		}
	}})
	func() {
		defer func() { _ = recover() }()
		_, _ = w.Append(t.Context(), request("bad", audit.StageRequestReceived, 0))
	}()
	fmt.Println("it went on")
}

func TestAPanicInTheLogEndsTheProcessWhateverItsCallersRecover(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicUnderACaller$") //nolint:gosec // this test
	cmd.Env = append(os.Environ(), panickingEnv+"=1")
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || !strings.Contains(string(out), "panic: audit log: what is in the log is not known") || strings.Contains(string(out), "it went on") {
		t.Errorf("%v: %s", err, out)
	}
}
