package segment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// faults collects what OnFault is told.
type faults struct {
	mu   sync.Mutex
	list []error
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, err)
}

// take returns what was told since the last time.
func (f *faults) take() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

func TestAFullDiskIsToldWithinASecondAndSoIsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, told := newMemory(), &faults{}
		w := open(t, disk, Options{SegmentBytes: 64 << 20, OnFault: told.add})
		for round := range 3 {
			disk.set(func() { disk.room = 0 })
			var err error
			for i := 0; err == nil; i++ { // takes what was allocated ahead
				e := request(fmt.Sprint(round, "-", i), audit.StageResponseComplete, 0)
				e.Outcome.Error = strings.Repeat("x", 7000)
				_, err = w.Append(t.Context(), e)
			}
			if !errors.Is(err, ErrFull) {
				t.Fatal(err)
			}
			time.Sleep(time.Second + time.Millisecond)
			synctest.Wait()
			if err := w.Stats().Err; !errors.Is(err, ErrFull) {
				t.Fatalf("round %d: a second after the disk was full: %v", round, err)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if list := told.take(); len(list) != 1 || !errors.Is(list[0], ErrFull) {
				t.Errorf("round %d: told %v", round, list)
			}
			disk.set(func() { disk.room = -1 })
			time.Sleep(time.Second + time.Millisecond)
			synctest.Wait()
			if list := told.take(); w.Stats().Err != nil || len(list) != 1 || list[0] != nil {
				t.Errorf("round %d: when there is room again: %v, told %v", round, w.Stats().Err, list)
			}
		}
		shut(t, w)
	})
}

// On a disk at its end, what one call gives back can be enough for the next. The log said that it was full, and well again, with each of them.
func TestADiskThatIsFullForEverySecondCallIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, told := newMemory(), &faults{}
		w := open(t, disk, Options{SegmentBytes: 64 << 20, OnFault: told.add})
		taken, refused := 0, 0
		for i := range 2000 {
			disk.set(func() {
				if disk.room = 0; i%2 == 1 {
					disk.room = 2 * audit.MaxRecord
				}
			})
			e := request(fmt.Sprint(i), audit.StageRequestReceived, 0)
			e.What = &audit.What{Pipe: strings.Repeat("x", 7000)}
			seq, err := w.Append(t.Context(), e)
			if err != nil {
				refused++
				continue
			}
			taken++
			if _, err := w.Append(t.Context(), request(fmt.Sprint(i), audit.StageResponseComplete, seq)); err != nil {
				t.Fatal(err)
			}
		}
		if list := told.take(); taken < 100 || refused < 100 || len(list) != 1 || !errors.Is(list[0], ErrFull) {
			t.Errorf("%d taken and %d refused within no time, told %d times", taken, refused, len(list))
		}
		disk.set(func() { disk.room = -1 })
		shut(t, w)
	})
}

func TestALogThatWorksAgainSaysSoWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, l, told := newMemory(), newLedger(), &faults{}
		w := open(t, disk, Options{OnFault: told.add})
		disk.set(func() { disk.fault = func(int, string) (int, error) { return 0, errFault } })
		if err := l.append(t, w, request("a", audit.StageRequestReceived, 0)); !errors.Is(err, ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		if err := w.Stats().Err; !errors.Is(err, errFault) {
			t.Errorf("stats say %v", err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if list := told.take(); len(list) == 0 || len(list) > 3 || slices.Contains(list, nil) {
			t.Errorf("a fault of a minute was told %d times: %v", len(list), list)
		}
		disk.set(func() { disk.fault = nil })
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if list := told.take(); w.Stats().Err != nil || len(list) != 1 || list[0] != nil {
			t.Errorf("%v, told %v", w.Stats().Err, list)
		}
		l.call(t, w, "after")
		shut(t, w)
		l.judge(t, records(t, disk))
	})
}

func TestALogThatIsNotSignedSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, l, told, one := newMemory(), newLedger(), &faults{}, &tree{}
		w := open(t, disk, Options{OnFault: told.add, Evidence: func(*Found) (Evidence, error) { return one, nil }})
		if w.Stats().Unsigned != nil {
			t.Fatal("a new log is not signed")
		}
		one.set(errFault)
		l.call(t, w, "a")
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if s := w.Stats(); !errors.Is(s.Unsigned, errFault) || s.Err != nil {
			t.Errorf("a second later: %+v", s)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if list := told.take(); len(list) != 1 || !errors.Is(list[0], errFault) {
			t.Errorf("told %v", list)
		}
		one.set(nil)
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		if list := told.take(); w.Stats().Unsigned != nil || len(list) != 1 || list[0] != nil {
			t.Errorf("%v, told %v", w.Stats().Unsigned, list)
		}
		shut(t, w)
	})
}

func TestAShortSessionIsSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, l, one := newMemory(), newLedger(), &tree{}
		w := open(t, disk, Options{Evidence: func(*Found) (Evidence, error) { return one, nil }})
		if signed, leaves := one.sizes(); len(signed) != 1 || signed[0] != leaves || leaves != 1 {
			t.Errorf("at the end of the start: signed %v of %d", signed, leaves)
		}
		for i := range 20 {
			l.call(t, w, fmt.Sprint(i))
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if signed, leaves := one.sizes(); signed[len(signed)-1] != leaves {
				t.Fatalf("100 ms after a record: signed %v of %d", signed, leaves)
			}
		}
		time.Sleep(10 * time.Second)
		before, _ := one.sizes()
		for i := range 100 { // an old session waits for its second
			l.call(t, w, fmt.Sprint("late-", i))
			time.Sleep(10 * time.Millisecond)
		}
		synctest.Wait()
		if after, _ := one.sizes(); len(after)-len(before) > 2 {
			t.Errorf("%d checkpoints in a second of an old session", len(after)-len(before))
		}
		shut(t, w)
	})
}

func TestTheLastRecordSaysHowManyRequestsHaveNone(t *testing.T) {
	for name, room := range map[string]int64{"with room": -1, "on a full disk": 0} {
		disk := newMemory()
		w := open(t, disk, Options{SegmentBytes: 256 << 10})
		disk.set(func() { disk.room = room })
		if room == 0 {
			for i := 0; ; i++ { // all that is not kept
				if _, err := w.Append(t.Context(), request(fmt.Sprint(i), audit.StageResponseComplete, 0)); errors.Is(err, ErrFull) {
					break
				}
			}
		}
		w.Missing(611)
		shut(t, w)
		events := records(t, disk)
		if last := events[len(events)-1]; last.Stage != audit.StageLogClose || last.Log == nil || last.Log.Unwritten != 611 {
			t.Errorf("%s: the last record is %+v", name, last)
		}
		disk.set(func() { disk.room = -1 })
		w = open(t, disk, Options{SegmentBytes: 256 << 10})
		shut(t, w)
		if events = records(t, disk); events[len(events)-1].Log.Unwritten != 0 {
			t.Errorf("%s: the next session says it again", name)
		}
	}
}

func TestTornBytesAreHeldByTheirHash(t *testing.T) {
	disk, l := newMemory(), newLedger()
	w := open(t, disk, Options{})
	l.call(t, w, "a")
	shut(t, w)
	torn := []byte(`{"v":1,"seq":5,"type":"request","stage":"Resp`)
	name := current(w)
	disk.set(func() {
		f := disk.files[name]
		f.data = append(f.data, torn...)
	})
	w = open(t, disk, Options{})
	shut(t, w)
	sum := sha256.Sum256(torn)
	for _, e := range records(t, disk) {
		if e.Stage != audit.StageLogOpen || e.Log.PreviousSegment == "" {
			continue
		}
		if e.Log.TornBytes != len(torn) || e.Log.PreviousTornHash != hex.EncodeToString(sum[:]) {
			t.Errorf("%+v", e.Log)
		}
		return
	}
	t.Error("no segment follows the torn one")
}

func TestNothingTornHasNoHash(t *testing.T) {
	disk, l := newMemory(), newLedger()
	for range 2 {
		w := open(t, disk, Options{})
		l.call(t, w, "a")
		shut(t, w)
	}
	for _, e := range records(t, disk) {
		if e.Log != nil && e.Log.PreviousTornHash != "" {
			t.Errorf("%+v", e.Log)
		}
	}
}
