package segment

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// named counts in how many records each segment is said to be removed.
func named(events []audit.Event) map[string]int {
	out := map[string]int{}
	for _, e := range events {
		if e.Stage == audit.StageLogPrune {
			for _, name := range e.Log.Pruned.Segments {
				out[name]++
			}
		}
	}
	return out
}

// A file that somebody has open cannot be removed on Windows.
func TestASegmentThatCannotBeRemovedYetIsNamedOnce(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	o := small()
	o.KeepBytes = 2 * o.SegmentBytes
	w := open(t, disk, o)
	failed := 0
	disk.set(func() {
		disk.fault = func(_ int, what string) (int, error) {
			if what == "remove" && failed < 5 {
				failed++
				return 0, errFault
			}
			return 0, nil
		}
	})
	for i := range 200 {
		l.call(t, w, fmt.Sprint(i))
	}
	shut(t, w)
	times := named(records(t, disk))
	if len(times) == 0 || failed != 5 {
		t.Fatalf("%d named, %d failures", len(times), failed)
	}
	for name, n := range times {
		if n != 1 || disk.files[name] != nil {
			t.Errorf("%s is named %d times, there: %v", name, n, disk.files[name] != nil)
		}
	}
}

// What keeps the log from its bound is said, and nothing is once it has gone.
func TestWhatShouldHaveBeenRemovedAndIsKeptForAnOperationIsSaid(t *testing.T) {
	disk, l := newMemory(), newLedger()
	l.pad = 500
	o := small()
	o.KeepBytes = 4 * o.SegmentBytes
	w := open(t, disk, o)
	for i := range 20 {
		l.call(t, w, fmt.Sprint("before", i))
	}
	if err := l.append(t, w, request("held", audit.StageRequestReceived, 0)); err != nil {
		t.Fatal(err)
	}
	began := l.acknowledged["held/RequestReceived"]
	for i := range 100 {
		l.call(t, w, fmt.Sprint("beside", i))
		if s := w.Stats(); s.Bytes <= o.KeepBytes && s.Overdue != 0 {
			t.Fatalf("within its bound, the log says that it keeps too much: %+v", s)
		}
	}
	if s := w.Stats(); s.Overdue < began || s.Bytes < 2*o.KeepBytes || records(t, disk)[0].Seq > began {
		t.Errorf("the operation began with record %d, and the log says %+v", began, s)
	}
	if seq, err := w.Append(t.Context(), l.padded(request("held", audit.StageResponseComplete, began))); err != nil {
		t.Fatal(err)
	} else {
		l.acknowledged["held/ResponseComplete"] = seq
	}
	for i := range 20 {
		l.call(t, w, fmt.Sprint("behind", i))
	}
	if s := w.Stats(); s.Overdue != 0 || s.Bytes > o.KeepBytes+o.SegmentBytes {
		t.Errorf("after its end: %+v", s)
	}
	shut(t, w)
}

// Calls can fill many segments between two looks at the clock.
func TestExcessSegmentsAreRemovedAsSegmentsFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, l := newMemory(), newLedger()
		l.pad = 500
		o := small()
		o.KeepBytes = 4 * o.SegmentBytes
		o.Evidence = func(*Found) (Evidence, error) { return &tree{isQuick: true}, nil }
		w := open(t, disk, o)
		began, most := time.Now(), int64(0)
		for i := range 400 {
			l.call(t, w, fmt.Sprint(i))
			synctest.Wait() // evidence takes no time here
			most = max(most, w.Stats().Bytes)
		}
		if s := w.Stats(); most > o.KeepBytes+o.SegmentBytes || s.Pruned < 20 || time.Since(began) != 0 {
			t.Errorf("%d bytes at most, to keep are %d in segments of %d, %+v after %s", most, o.KeepBytes, o.SegmentBytes, s, time.Since(began))
		}
		shut(t, w)
	})
}

func TestNothingIsRemovedThatEvidenceCannotDoWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, l, tree := newMemory(), newLedger(), &tree{refusal: errFault}
		l.pad = 500
		o := small()
		o.KeepBytes = 2 * o.SegmentBytes
		o.Evidence = func(*Found) (Evidence, error) { return tree, nil }
		told := &faults{}
		o.OnFault = told.add
		w := open(t, disk, o)
		for i := range 100 {
			l.call(t, w, fmt.Sprint(i))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if events := records(t, disk); events[0].Seq != 1 || len(named(events)) != 0 || !errors.Is(w.Stats().Unpruned, errFault) {
			t.Errorf("the log begins with record %d, %d named, %+v", events[0].Seq, len(named(events)), w.Stats())
		}
		if list := told.take(); len(list) != 1 || !errors.Is(list[0], errFault) {
			t.Errorf("told %v", list)
		}
		tree.mu.Lock()
		tree.refusal = nil
		tree.mu.Unlock()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if events := records(t, disk); events[0].Seq == 1 || w.Stats().Bytes > o.KeepBytes {
			t.Errorf("the log begins with record %d, %+v", events[0].Seq, w.Stats())
		}
		if list := told.take(); w.Stats().Unpruned != nil || len(list) != 1 || list[0] != nil {
			t.Errorf("told %v, %v", list, w.Stats().Unpruned)
		}
		shut(t, w)
	})
}

// Without a signature, a record that says that others are removed is anybody's word: first the record, then its checkpoint, then the removal.
func TestNothingIsRemovedBeforeTheRecordThatSaysSoIsSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, l, tree := newMemory(), newLedger(), &tree{}
		l.pad = 500
		o := small()
		o.KeepBytes = 2 * o.SegmentBytes
		o.Evidence = func(*Found) (Evidence, error) { return tree, nil }
		o.OnFault = func(error) {}
		w := open(t, disk, o)
		removals := 0
		disk.set(func() {
			disk.fault = func(_ int, what string) (int, error) {
				if what == "remove" {
					removals++
					if signed, leaves := tree.sizes(); signed[len(signed)-1] != leaves {
						t.Errorf("removed with %d of %d records signed", signed[len(signed)-1], leaves)
					}
				}
				return 0, nil
			}
		})
		tree.set(errFault)
		for i := range 100 {
			l.call(t, w, fmt.Sprint(i))
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if events := records(t, disk); removals > 0 || events[0].Seq != 1 || len(named(events)) == 0 {
			t.Errorf("unsigned: %d removals, %d named", removals, len(named(events)))
		}
		tree.set(nil)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if events := records(t, disk); removals == 0 || events[0].Seq == 1 {
			t.Errorf("signed: %d removals, and the log begins with record %d", removals, events[0].Seq)
		}
		shut(t, w)
	})
}

// What stands behind a sealed end is left out by the next start. So a start that cannot sign leaves nothing there.
func TestAStartBehindASealedEndIsSignedOrLeavesNothing(t *testing.T) {
	disk, l, one := newMemory(), newLedger(), &tree{}
	o := Options{Evidence: func(*Found) (Evidence, error) { return one, nil }}
	w := open(t, disk, o)
	l.call(t, w, "a")
	shut(t, w)
	before := records(t, disk)
	o.Covered = uint64(len(before))
	unsigned := &tree{leaves: slices.Clone(one.leaves), broken: errFault}
	for range 3 {
		if _, err := OpenDisk(t.Context(), disk, Options{Covered: o.Covered, Evidence: func(*Found) (Evidence, error) { return unsigned, nil }}); !errors.Is(err, errFault) {
			t.Fatalf("got %v", err)
		}
		unsigned.leaves = slices.Clone(one.leaves)
		if after := records(t, disk); len(after) != len(before) || len(disk.files) != 1 {
			t.Fatalf("%d records and %d files, before were %d records", len(after), len(disk.files), len(before))
		}
	}
	w = open(t, disk, o)
	l.call(t, w, "b")
	shut(t, w)
	l.judge(t, records(t, disk))
}

func TestALogWhoseSpaceCannotBeReservedSaysSo(t *testing.T) {
	disk, l := newMemory(), newLedger()
	disk.fault = func(_ int, what string) (int, error) {
		if what == "allocate" {
			return 0, errors.ErrUnsupported
		}
		return 0, nil
	}
	w := open(t, disk, Options{Retry: time.Nanosecond})
	l.call(t, w, "a")
	disk.set(func() { disk.room = 100 })
	if err := l.append(t, w, request("b", audit.StageRequestReceived, 0)); err == nil {
		t.Error("a full disk took a record")
	}
	disk.set(func() { disk.room = -1 })
	l.call(t, w, "c")
	shut(t, w)
	events := records(t, disk)
	l.judge(t, events)
	if !events[0].Log.Unreserved {
		t.Errorf("%+v", events[0].Log)
	}
}

// Without the segment that declares it void, a file without a record would be a change of the log, and beside that segment its absence is one.
func TestAVoidFileGoesWithTheSegmentThatDeclaresIt(t *testing.T) {
	for name, first := range map[string]uint64{"of the number that is due": 1, "far ahead": 900_000} {
		disk, l := newMemory(), newLedger()
		l.pad = 500
		o := small()
		o.KeepBytes = 4 * o.SegmentBytes
		void := Name(first)
		disk.files[void] = &memoryFile{disk: disk, data: []byte("x\n")}
		w := open(t, disk, o)
		by := current(w)
		for i := 0; i < 500 && disk.has(by); i++ {
			if !disk.has(void) {
				t.Fatalf("%s: it is gone before the segment that declares it", name)
			}
			l.call(t, w, fmt.Sprint(i))
		}
		shut(t, w)
		if disk.has(by) || disk.has(void) {
			t.Errorf("%s: the segment that declares it is there: %t, and it: %t", name, disk.has(by), disk.has(void))
		}
		said := 0
		for _, e := range records(t, disk) {
			if e.Stage == audit.StageLogPrune && slices.Contains(e.Log.Pruned.Segments, by) && slices.Contains(e.Log.Pruned.Segments, void) {
				said++
			}
		}
		if said != 1 {
			t.Errorf("%s: %d records name both", name, said)
		}
	}
}
