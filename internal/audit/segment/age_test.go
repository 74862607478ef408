package segment

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

func TestSegmentsEndAfterADayWhateverTheClockSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		var mu sync.Mutex
		var set time.Duration
		jump := func(d time.Duration) { mu.Lock(); set += d; mu.Unlock() }
		w := open(t, disk, Options{Now: func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(set) }})
		segments := func(want int, when string) {
			t.Helper()
			if synctest.Wait(); w.Stats().Segments != want {
				t.Errorf("%s: %d segments, want %d", when, w.Stats().Segments, want)
			}
		}
		time.Sleep(49 * time.Hour)
		segments(1, "nothing happened for two days")
		mustAppend(t, w, request("a", audit.StageResponseComplete, 0)) // the segment is old: it goes into a second one
		segments(1, "a segment without records is used")
		time.Sleep(2 * time.Second)
		segments(2, "an old segment holds a record")
		mustAppend(t, w, request("b", audit.StageResponseComplete, 0))
		time.Sleep(23 * time.Hour)
		segments(2, "a day is not over")
		time.Sleep(time.Hour)
		segments(3, "a day is over")
		mustAppend(t, w, request("c", audit.StageResponseComplete, 0))
		jump(-72 * time.Hour)
		time.Sleep(23 * time.Hour)
		segments(3, "the clock was set back")
		time.Sleep(time.Hour)
		segments(4, "a day is over, whatever the clock says")
		mustAppend(t, w, request("d", audit.StageResponseComplete, 0))
		jump(96 * time.Hour)
		time.Sleep(2 * time.Second)
		segments(5, "the clock was set forward")
		mustAppend(t, w, request("e", audit.StageResponseComplete, 0))
		time.Sleep(time.Minute)
		segments(5, "only once")
		shut(t, w)
		records(t, disk)
	})
}

func TestEvidenceOfAnotherLogIsRefused(t *testing.T) {
	other := &tree{leaves: make([]string, 3)}
	if w, err := OpenDisk(t.Context(), newMemory(), Options{Evidence: func(*Found) (Evidence, error) { return other, nil }}); err == nil {
		t.Error("three leaves were taken for an empty log")
		shut(t, w)
	}
}

func TestOldSegmentsAreNamedBeforeTheyAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, tree := newMemory(), &tree{}
		w := open(t, disk, Options{KeepAge: 72 * time.Hour, Evidence: func(*Found) (Evidence, error) { return tree, nil }})
		var under uint64
		for day := range 7 {
			mustAppend(t, w, request(fmt.Sprint(day), audit.StageResponseComplete, 0))
			if day == 4 {
				under = mustAppend(t, w, request("long", audit.StageRequestReceived, 0))
			}
			time.Sleep(24*time.Hour + 2*time.Second)
		}
		time.Sleep(120 * time.Hour)
		events := records(t, disk)
		if first := events[0].Seq; first == 1 || first > under || first+8 < under {
			t.Errorf("the log begins with record %d; intent %d is open", first, under)
		}
		mustAppend(t, w, request("long", audit.StageResponseComplete, under))
		time.Sleep(time.Hour)
		events = records(t, disk)
		if events[0].Seq <= under {
			t.Errorf("the log begins with record %d", events[0].Seq)
		}
		for _, e := range events {
			if e.Stage == audit.StageLogPrune {
				if p := e.Log.Pruned; p.TreeSize != e.Seq-1 || p.LastSeq >= e.Seq || len(p.Segments) == 0 || p.LastSeq > tree.pruned || p.Reason != audit.CauseAge || p.Root == "" {
					t.Errorf("record %d: %+v", e.Seq, p)
				}
			}
		}
		shut(t, w)
		w = open(t, disk, Options{})
		shut(t, w)
		if events = records(t, disk); events[0].Seq <= under {
			t.Error("the log began anew")
		}
	})
}

func TestTheLogStaysWithinItsSizeAndNamesWhatItRemoved(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	o := small()
	o.KeepBytes = 4 * o.SegmentBytes
	w := open(t, disk, o)
	gone := uint64(0)
	for i := range 400 {
		l.call(t, w, fmt.Sprint(i))
		if s := w.Stats(); s.Bytes > o.KeepBytes+o.SegmentBytes {
			t.Fatalf("%d bytes", s.Bytes)
		}
		disk.set(func() { // at every moment: what is gone was named
			for name := range disk.files {
				if first, ok := ParseName(name); ok && (gone == 0 || first < gone) {
					gone = first
				}
			}
		})
	}
	if w.Stats().Pruned < 10 {
		t.Errorf("%+v", w.Stats())
	}
	shut(t, w)
	events := records(t, disk)
	last := uint64(0)
	for _, e := range events {
		if e.Stage == audit.StageLogPrune {
			last = e.Log.Pruned.LastSeq
		}
	}
	if last+1 != events[0].Seq {
		t.Errorf("the log begins with record %d, and what was removed ends with %d", events[0].Seq, last)
	}
}

// tree counts, as evidence does.
type tree struct {
	isQuick bool // to prepare for a removal
	mu      sync.Mutex
	leaves  []string
	signed  []int
	pruned  uint64
	removed uint64 // the last record that was to be removed
	refusal error
	broken  error // why it cannot sign
}

// set says why the tree cannot be signed from now on.
func (t *tree) set(broken error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.broken = broken
}

func (t *tree) Append(leaf [32]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leaves = append(t.leaves, encodeLeaf(leaf))
}

func (t *tree) Checkpoint(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.broken == nil {
		t.signed = append(t.signed, len(t.leaves))
	}
	return t.broken
}

func (t *tree) Removed() uint64 { return t.removed }

func (t *tree) Prune(_ context.Context, last uint64) error {
	if !t.isQuick {
		time.Sleep(3 * time.Second)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refusal == nil {
		t.pruned = max(t.pruned, last)
	}
	return t.refusal
}

func (t *tree) sizes() (signed []int, leaves int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.signed), len(t.leaves)
}

func (t *tree) Root() (uint64, [32]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return uint64(len(t.leaves)), [32]byte{1}, nil
}

// A process that ended while it removed segments left some that no checkpoint can be compared with any more.
func TestAStartRemovesWhatWasToBeRemoved(t *testing.T) {
	disk, one := newMemory(), &tree{isQuick: true}
	o := Options{SegmentBytes: 2 * audit.MaxRecord, Evidence: func(*Found) (Evidence, error) { return one, nil }}
	w := open(t, disk, o)
	l := newLedger()
	for i := range 400 {
		l.call(t, w, fmt.Sprint(i))
	}
	shut(t, w)
	segments := func() []string {
		t.Helper()
		names, err := disk.Names()
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		return names
	}
	names := segments()
	if len(names) < 4 {
		t.Fatalf("%d segments", len(names))
	}
	third, _ := ParseName(names[2])
	for _, c := range []struct {
		removed uint64
		gone    int
	}{{third - 2, 1}, {third - 1, 2}} {
		one.removed = c.removed
		shut(t, open(t, disk, o))
		left := segments()
		if slices.Contains(left, names[c.gone-1]) || !slices.Contains(left, names[c.gone]) {
			t.Errorf("up to record %d: of %v, %v are left", c.removed, names, left)
		}
	}
	if events := records(t, disk); events[0].Seq != third {
		t.Errorf("the log begins with record %d", events[0].Seq)
	}
}

func TestEvidenceIsOfExactlyWhatIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, l, one := newMemory(), newLedger(), &tree{}
		w := open(t, disk, Options{Retry: time.Nanosecond, Evidence: func(f *Found) (Evidence, error) {
			if len(f.parts) != 0 {
				t.Error("a segment of an empty log")
			}
			return one, nil
		}})
		for i := range 20 {
			if i%5 == 4 { // what was written but not flushed is no leaf
				failed := false
				disk.set(func() {
					disk.fault = func(_ int, what string) (int, error) {
						if what == "sync" && !failed {
							failed = true
							return 0, errFault
						}
						return 0, nil
					}
				})
			}
			l.call(t, w, fmt.Sprint(i))
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if signed, leaves := one.sizes(); len(signed) != 2 || signed[0] != 1 || signed[1] != leaves {
			t.Errorf("signed %v of %d", signed, leaves)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if signed, _ := one.sizes(); len(signed) != 7 {
			t.Errorf("signed %d times in five idle minutes", len(signed)-2)
		}
		shut(t, w)
		l.judge(t, records(t, disk))
		if one.signed[len(one.signed)-1] != len(one.leaves) {
			t.Error("the last checkpoint is not of the end")
		}
		w = open(t, disk, Options{Evidence: func(f *Found) (Evidence, error) {
			i := 0
			for _, p := range f.parts {
				err := p.lines(disk, func(line []byte, _ int64) bool {
					if i >= len(one.leaves) || one.leaves[i] != encodeLeaf(Leaf(line)) {
						t.Errorf("leaf %d", i)
					}
					i++
					return true
				})
				if err != nil {
					t.Error(err)
				}
			}
			if i != len(one.leaves) || f.First != 1 || f.Last != uint64(i) {
				t.Errorf("%d leaves of %d, records %d to %d", i, len(one.leaves), f.First, f.Last)
			}
			return one, nil
		}})
		shut(t, w)
	})
}
