package policy

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatcherWaitsForQuietAndNeverForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{WatchPoll: time.Hour, WatchSettle: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		changed := make(chan struct{}, 1)
		var loads atomic.Int64
		w := e.newWatcher(e.options.WatchPoll, func() (Modules, error) { loads.Add(1); return small(), nil }, nil)
		w.changed = changed
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		synctest.Wait()
		if loads.Load() != 1 {
			t.Fatalf("%d loads at the start", loads.Load())
		}

		for range 5 { // changes that follow one another are one
			changed <- struct{}{}
			time.Sleep(900 * time.Millisecond)
		}
		if synctest.Wait(); loads.Load() != 1 {
			t.Fatalf("%d loads while it is written", loads.Load())
		}
		time.Sleep(time.Second)
		if synctest.Wait(); loads.Load() != 2 {
			t.Fatalf("%d loads after it became quiet", loads.Load())
		}

		for range 2 * settleRounds { // a directory that never rests is read all the same
			changed <- struct{}{}
			time.Sleep(900 * time.Millisecond)
		}
		if synctest.Wait(); loads.Load() < 3 {
			t.Fatal("a directory that never rests is never read")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()

		before := loads.Load()
		time.Sleep(time.Hour)
		if synctest.Wait(); loads.Load() != before+1 {
			t.Fatalf("%d loads in one poll interval", loads.Load()-before)
		}
		cancel()
		<-done
	})
}

// A link to a file that never ends, or a network file system that is away, left the webhook without new policies, said nothing, and kept it from stopping.
func TestAReaderThatNeverReturnsIsToldAndWaitedForByNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Timeout: time.Minute, WatchPoll: time.Second, WatchRead: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var loads, reading atomic.Int64
		stuck := make(chan struct{}) // closed while files answer
		close(stuck)
		var mu sync.Mutex
		current := small()
		load := func() (Modules, error) {
			loads.Add(1)
			if reading.Add(1) > 1 {
				t.Error("two loads at a time")
			}
			defer reading.Add(-1)
			mu.Lock()
			m, wait := current, stuck
			mu.Unlock()
			<-wait
			return m, nil
		}
		set := func(m Modules, until chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			current, stuck = m, until
		}
		var told []string
		w := e.newWatcher(e.options.WatchPoll, load, func(_ Snapshot, err error) {
			what := "activated"
			if err != nil {
				what = err.Error()
			}
			told = append(told, what)
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		time.Sleep(1500 * time.Millisecond)

		until := make(chan struct{})
		set(small(), until)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		const late = "policies: not read after 30s: the disk or a network file system does not answer"
		if want := []string{"activated", late}; !slices.Equal(told, want) {
			t.Fatalf("told %q, want %q", told, want)
		}
		if _, ok := e.Active(); !ok {
			t.Fatal("nothing decides any more")
		}
		// What it had begun to read is not what is there now.
		answers := make(chan struct{})
		close(answers)
		set(small().WithData(map[string]any{"a": 1}), answers)
		close(until)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if want := []string{"activated", late, "activated"}; !slices.Equal(told, want) {
			t.Fatalf("told %q, want %q", told, want)
		}

		until = make(chan struct{})
		set(small(), until)
		time.Sleep(5 * time.Second)
		cancel()
		<-done // the reader is still at it
		if reading.Load() != 1 {
			t.Errorf("%d loads under way", reading.Load())
		}
		close(until)
	})
}

func TestWatcherTellsOfEachContentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Timeout: time.Minute, WatchPoll: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		type outcome struct {
			m   Modules
			err error
		}
		broken := small().with(map[string]string{"small.rego": "package"})
		gone := errors.New("gone")
		states := []outcome{{m: small()}, {m: small()}, {err: gone}, {err: gone}, {m: broken}, {m: broken}, {m: broken}, {m: small()}, {m: small()}, {m: small().WithData(map[string]any{"a": 1})}}
		var told []string
		i := 0
		ctx, cancel := context.WithCancel(t.Context())
		w := e.newWatcher(e.options.WatchPoll, func() (Modules, error) {
			s := states[i]
			if i++; i == len(states) {
				defer cancel()
			}
			return s.m, s.err
		}, nil)
		w.onResult = func(s Snapshot, err error) {
			if err != nil {
				told = append(told, "refused")
			} else {
				told = append(told, "activated")
			}
			if _, ok := e.Active(); !ok {
				t.Error("a moment without a policy")
			}
		}
		w.run(ctx)
		// The last state is loaded in the moment in which the context ends, so nothing is said of it.
		want := "[activated refused refused activated]"
		if got := join(told); got != want {
			t.Fatalf("told %s, want %s", got, want)
		}
	})
}

func join(s []string) string {
	out := "["
	for i, v := range s {
		if i > 0 {
			out += " "
		}
		out += v
	}
	return out + "]"
}

// A poll took parameters that were being written, and what was cut off permitted more than the whole.
func TestWatcherTakesNothingThatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := New(Options{Timeout: time.Minute, WatchPoll: time.Minute, WatchSettle: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		var written, activated atomic.Int64
		var told []string
		w := e.newWatcher(e.options.WatchPoll, func() (Modules, error) { return small().WithData(map[string]any{"a": written.Load()}), nil }, nil)
		w.onResult = func(s Snapshot, err error) {
			if err != nil {
				t.Error(err)
			}
			told = append(told, s.Revision())
			activated.Add(1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }()
		time.Sleep(time.Minute - time.Second/2)
		for range 5 {
			written.Add(1)
			time.Sleep(time.Second)
		}
		if synctest.Wait(); activated.Load() != 1 {
			t.Errorf("told of %d while it was written", activated.Load())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		cancel()
		<-done
		if len(told) != 2 || told[0] == told[1] {
			t.Errorf("told of %q", told)
		}
	})
}

func TestWatcherTriesAgainWhatRanOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := true
		o := Options{Timeout: time.Minute, WatchPoll: time.Second}
		o.Checks = []Check{{Name: "slow", Input: map[string]any{}, Want: func(Decision) error {
			if busy {
				return context.DeadlineExceeded
			}
			return nil
		}}}
		e, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		var told []error
		w := e.newWatcher(e.options.WatchPoll, func() (Modules, error) { return small(), nil }, nil)
		w.onResult = func(_ Snapshot, err error) { told = append(told, err); busy = len(told) < 2 }
		w.run(ctx)
		if len(told) != 3 || told[0] == nil || told[1] == nil || told[2] != nil {
			t.Fatalf("told %v", told)
		}
	})
}
