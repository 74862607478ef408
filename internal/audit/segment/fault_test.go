package segment

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// small are options under which a few long records make several segments, of which some are removed.
func small() Options {
	return Options{SegmentBytes: 2 * audit.MaxRecord, Admitted: 4, Retry: time.Nanosecond}
}

// scenario is a short life of a log: two processes, several segments, calls that end and calls that do not.
func scenario(t testing.TB, disk *memory, l *ledger) {
	l.pad = 1200
	for run := range 2 {
		w, err := OpenDisk(t.Context(), disk, small())
		if err != nil {
			continue // the next one finds the same disk
		}
		for i := range 14 {
			l.call(t, w, fmt.Sprintf("r%d-%d", run, i))
		}
		_ = l.append(t, w, request(fmt.Sprintf("open-%d", run), audit.StageRequestReceived, 0))
		_ = w.Close()
	}
}

// sampled is every how many places are tried where all of them take long: each if PIPEGUARD_EXHAUSTIVE is set, and fewer with -short.
func sampled(every int) int {
	switch {
	case os.Getenv("PIPEGUARD_EXHAUSTIVE") != "":
		return 1
	case testing.Short():
		return every*2 + 1
	}
	return every
}

func TestAFaultAtAnyStepLosesNothingThatWasAcknowledged(t *testing.T) {
	counted := newMemory()
	scenario(t, counted, newLedger())
	t.Logf("%d steps", counted.steps)
	stride := sampled(7)
	for _, kind := range []struct {
		name    string
		written int
		lasting int // how many steps fail
	}{{"nothing is written", 0, 1}, {"half a line is written", 100, 1}, {"everything is written", 1 << 20, 1}, {"five in a row", 1 << 20, 5}, {"twelve in a row", 300, 12}} {
		t.Run(kind.name, func(t *testing.T) {
			for at := 1; at <= counted.steps; at += stride * max(1, kind.lasting/3) {
				disk, l := newMemory(), newLedger()
				disk.fault = func(step int, _ string) (int, error) {
					if step >= at && step < at+kind.lasting {
						return kind.written, errFault
					}
					return 0, nil
				}
				scenario(t, disk, l)
				for _, more := range []int{0, 1 << 30} { // what was not flushed may be lost or be there
					after := disk.crash(more)
					shut(t, open(t, after, small()))
					events := records(t, after)
					l.judge(t, events)
					settled(t, events)
					copies(t, after)
				}
				if t.Failed() {
					t.Fatalf("fault at step %d", at)
				}
			}
		})
	}
}

func TestALogThatWorksMarksNothing(t *testing.T) {
	disk, l := newMemory(), newLedger()
	scenario(t, disk, l)
	events := records(t, disk)
	l.judge(t, events)
	if len(l.failed) > 0 {
		t.Errorf("refused: %v", l.failed)
	}
	orphans, closes := 0, 0
	for _, e := range events {
		if e.Again || e.Log != nil && (e.Log.TornBytes != 0 || e.Log.Fault != "" || e.Log.Lost != 0 || len(e.Log.Void) != 0) {
			t.Errorf("record %d: %+v %+v", e.Seq, e, e.Log)
		}
		if e.Stage == audit.StageOrphaned {
			orphans++
		}
		if e.Stage == audit.StageLogClose {
			closes++
		}
	}
	s, err := survey(disk, Signed{})
	parts, void := s.parts, s.void
	if err != nil || len(void) != 0 || closes != len(parts) || len(parts) < 3 {
		t.Errorf("%d segments, %d closed, void %v, %v", len(parts), closes, void, err)
	}
	if orphans != 1 { // of the first run; nothing has followed the second one
		t.Errorf("%d orphans", orphans)
	}
}
