//go:build unix

package shipping

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

const (
	callers      = 16
	segmentBytes = 16 * audit.MaxRecord
	patience     = time.Minute
)

// log is what is known of a log from its writer's side.
type log struct {
	disk *disk

	mu      sync.Mutex // guards what follows
	durable []string   // lines, in order

	places map[string]place // of every line that stands in a file
}

// place is where a line stands.
type place struct {
	segment string
	line    int
}

func (l *log) open(t *testing.T, keep int64) *segment.Writer {
	t.Helper()
	w, err := segment.OpenDisk(t.Context(), l.disk, segment.Options{
		SegmentBytes: segmentBytes, KeepBytes: keep,
		OnRecord: func(line []byte) {
			l.mu.Lock()
			l.durable = append(l.durable, string(line))
			l.mu.Unlock()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// append has many callers write n records. At is called with how many there are.
func (l *log) append(t *testing.T, w *segment.Writer, n int, at func(int)) {
	t.Helper()
	var running sync.WaitGroup
	next := make(chan int)
	for range callers {
		running.Go(func() {
			for i := range next {
				_, err := w.Append(context.Background(), &audit.Event{
					Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: fmt.Sprint("call-", i),
					Who:     &audit.Who{Assurance: "none"},
					What:    &audit.What{FullMethod: "\u00e9\u202e\n\x00\"" + strings.Repeat("x", i%97*i%997)},
					Outcome: &audit.Outcome{Result: audit.ResultError, Code: "Unimplemented", Error: "unknown method <%msg% $!all>"},
				})
				if err != nil {
					t.Errorf("record %d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		at(i)
		next <- i
	}
	close(next)
	running.Wait()
}

// look notes where lines stand, and returns how many segments there are. A line without its end is none.
func (l *log) look(t *testing.T) int {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(l.disk.path, "audit-*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for line := range bytes.Lines(text) {
			if number++; bytes.HasSuffix(line, []byte("\n")) {
				l.places[string(line)] = place{filepath.Base(name), number}
			}
		}
	}
	return len(names)
}

// shipped waits until every line that stands in a file has come, or, of a shipper that was killed, every one but the first of each.
func (l *log) shipped(t *testing.T, r *receiver, isKilled bool) {
	t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		r.mu.Lock()
		late = true
		r.mu.Unlock()
		r.arrived.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	missing, looked := maps.Clone(l.places), 0
	maps.DeleteFunc(missing, func(_ string, p place) bool { return isKilled && p.line == 1 })
	for {
		for ; looked < len(r.lines); looked++ {
			delete(missing, r.lines[looked])
		}
		if len(missing) == 0 {
			return
		}
		if late {
			t.Fatalf("%d of %d lines did not come within %v", len(missing), len(l.places), patience)
		}
		r.arrived.Wait()
	}
}

// verdict is what came of a log.
type verdict struct {
	missing  []place // of durable records
	late     []place // lines of a segment that came after later ones
	repeated int     // lines that came again
	behind   int     // lines that stand in a segment behind what is of the log
}

// judge compares what came with what is durable, byte for byte. The shipper has ended: what it still sent has come.
func (l *log) judge(t *testing.T, r *receiver) (v verdict) {
	t.Helper()
	came, last, durable := map[string]int{}, map[string]int{}, map[string]bool{}
	for _, line := range l.durable {
		durable[line] = true
	}
	for _, line := range r.all() {
		p, known := l.places[line]
		if !known {
			t.Errorf("what came stands in no segment: %q", line)
			continue
		}
		if came[line]++; came[line] > 1 {
			v.repeated++
			continue
		}
		if !durable[line] {
			v.behind++
		}
		if p.line <= last[p.segment] {
			v.late = append(v.late, p)
			continue
		}
		last[p.segment] = p.line
	}
	for _, line := range l.durable {
		if came[line] == 0 {
			v.missing = append(v.missing, l.places[line])
		}
	}
	if len(durable) != len(l.durable) || len(durable) < 1000 {
		t.Errorf("%d durable records, %d of them different", len(l.durable), len(durable))
	}
	t.Logf("%d durable records in %d segments: %d missing, %d came again, and %d lines that were not acknowledged",
		len(l.durable), len(last), len(v.missing), v.repeated, v.behind)
	return v
}

func TestRsyslogShipsEveryDurableRecordOnce(t *testing.T) {
	l := &log{disk: &disk{path: t.TempDir()}, places: map[string]place{}}
	r := receive(t)
	s := newShipper(t, l.disk.path, r.listener.Addr().String())
	s.start(t)

	w := l.open(t, 0)
	var restarted sync.WaitGroup
	l.append(t, w, 19_000, func(i int) {
		switch i {
		case 3000:
			l.disk.fails.Store(1500) // a line is cut short
		case 9000:
			restarted.Go(func() {
				r.wait(1) // it runs, and ends well when it is told to
				t.Logf("a restart after %d lines", r.count())
				s.end(t, syscall.SIGTERM)
				s.start(t)
			})
		case 6000, 12_000:
			l.disk.fails.Store(flush) // whole lines stand there, and nobody was told so
		}
	})
	restarted.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	before := l.look(t)
	l.shipped(t, r, false)

	// Room is made while the shipper runs, and new segments may have the inodes of old ones.
	w = l.open(t, 10*segmentBytes)
	l.append(t, w, 1000, func(int) {})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	after := l.look(t)
	l.shipped(t, r, false)
	s.end(t, syscall.SIGTERM)

	if l.disk.failed.Load() != 3 || before < 50 || after > before/2 {
		t.Errorf("%d writes failed, %d segments, then %d", l.disk.failed.Load(), before, after)
	}
	if v := l.judge(t, r); len(v.missing) > 0 || len(v.late) > 0 || v.repeated > 0 || v.behind == 0 {
		t.Errorf("%+v", v)
	}
}

// A position that moved before its line was handed over is that of the first line of a segment, which says how the log goes on and
// is no call's.
func TestAKilledShipperMissesNoRecordOfACall(t *testing.T) {
	l := &log{disk: &disk{path: t.TempDir()}, places: map[string]place{}}
	r := receive(t)
	s := newShipper(t, l.disk.path, r.listener.Addr().String())
	s.start(t)
	w := l.open(t, 0)
	kills := 0
	l.append(t, w, 3000, func(i int) {
		if i%1000 == 500 {
			r.wait(i / 2)
			s.end(t, syscall.SIGKILL)
			s.start(t)
			kills++
		}
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l.look(t)
	l.shipped(t, r, true)
	s.end(t, syscall.SIGTERM)
	v := l.judge(t, r)
	for _, p := range slices.Concat(v.missing, v.late) { // of a segment that is read again from its beginning, the first line comes late
		if p.line != 1 {
			t.Errorf("line %d of %s is missing, or comes late", p.line, p.segment)
		}
	}
	if n := len(v.missing) + len(v.late); n > kills {
		t.Errorf("%d kills, and %d openings of segments are missing or late", kills, n)
	}
}
