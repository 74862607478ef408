package copies

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEveryPlaceGetsEveryRecordInOrder(t *testing.T) {
	a, b := &place{name: "a"}, &place{name: "b"}
	c := mustNew(t, Options{Destinations: []Destination{a, b}})
	var want []string
	for i := range uint64(2000) {
		l := line(t, numbered(i+1))
		want = append(want, strings.TrimSuffix(string(l), "\n"))
		c.Record(l)
		clear(l) // the log uses the memory again
	}
	mustClose(t, c)
	for _, p := range []*place{a, b} {
		if diff := cmp.Diff(want, p.lines()); diff != "" {
			t.Errorf("%s: %s", p.name, diff)
		}
	}
	if diff := cmp.Diff([]Stats{{Name: "a", Sent: 2000}, {Name: "b", Sent: 2000}}, c.Stats()); diff != "" {
		t.Error(diff)
	}
}

func TestAPlaceThatBlocksForEverHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		stuck := &place{name: "stuck", send: func(context.Context, []Record) error { <-release; return nil }}
		good := &place{name: "good"}
		var told troubles
		c := mustNew(t, Options{Destinations: []Destination{stuck, good}, Queue: 20_000, OnLoss: told.add})
		begin := time.Now()
		for range 100 {
			c.Record(raw(1000)) // in a bubble, a Record that waited would be a deadlock
			synctest.Wait()
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("records waited %v", d)
		}
		const room = 20_000 / (1000 + overhead)
		if diff := cmp.Diff([]Stats{{Name: "stuck", Dropped: 100 - room, Queued: room}, {Name: "good", Sent: 100}}, c.Stats()); diff != "" {
			t.Error(diff)
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		err := c.Close(ctx)
		if d := time.Since(begin); d != 5*time.Second || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stuck: 18 records were not delivered") {
			t.Errorf("closed after %v: %v", d, err)
		}
		close(release)
		synctest.Wait()
		// The first batch was one record; it was taken after all. The rest is not even tried.
		if diff := cmp.Diff(Stats{Name: "stuck", Sent: 1, Dropped: 100 - room, Failed: room - 1}, c.Stats()[0]); diff != "" {
			t.Error(diff)
		}
	})
}

// A queue gives up when the time is up, and may have done so before Close looks at it: its records are lost and said to be so all the same.
func TestWhatIsLostAtTheEndIsSaidHoweverFastItWasGivenUp(t *testing.T) {
	for range 100 {
		begun := make(chan struct{}, 2)
		heeds := func(ctx context.Context, _ []Record) error {
			begun <- struct{}{}
			<-ctx.Done()
			return &AgainError{Err: ctx.Err()}
		}
		c := mustNew(t, Options{Destinations: []Destination{&place{name: "one", send: heeds}, &place{name: "other", send: heeds}}, Queue: 20_000})
		for range 3 {
			c.Record(raw(1000))
		}
		<-begun
		<-begun
		ctx, stop := context.WithCancel(t.Context())
		stop()
		err := c.Close(ctx)
		for _, name := range []string{"one", "other"} {
			if want := "copies to " + name + ": 3 records were not delivered"; err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("%v, want %s", err, want)
			}
		}
	}
}

func TestEachRecordIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		moody := &place{name: "moody", send: func(ctx context.Context, records []Record) error {
			time.Sleep(time.Second)
			switch n++; n % 5 {
			case 1:
				return errors.New("no")
			case 2:
				return &PartialError{Failed: (len(records) + 1) / 2, Err: errors.New("not all")}
			case 3:
				return &AgainError{Err: errors.New("not now")}
			case 4:
				return &PartialError{Failed: 1 << 40, Err: errors.New("a count that cannot be")}
			}
			return nil
		}}
		c := mustNew(t, Options{Destinations: []Destination{moody}, Queue: 20_000})
		const given = 5000
		for i := range given {
			c.Record(raw(100 + i%1000))
			if i%7 == 0 {
				time.Sleep(100 * time.Millisecond)
			}
			if s := c.Stats()[0]; s.Sent+s.Dropped+s.Failed+s.Queued != uint64(i)+1 {
				t.Fatalf("after %d: %+v", i+1, s)
			}
		}
		mustClose(t, c)
		s := c.Stats()[0]
		if s.Sent+s.Dropped+s.Failed != given || s.Queued != 0 || s.Sent == 0 || s.Dropped == 0 || s.Failed == 0 {
			t.Errorf("%+v", s)
		}
		if c.queues[0].held != 0 {
			t.Errorf("%d bytes are held for nothing", c.queues[0].held)
		}
	})
}

func TestWhatWasFirstStaysAndTheGapIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &place{name: "p", send: func(context.Context, []Record) error { <-release; return nil }}
		var told troubles
		c := mustNew(t, Options{Destinations: []Destination{p}, Queue: 20_000, OnLoss: told.add})
		for i := range 19 {
			c.Record([]byte(strings.Repeat(string(rune('a'+i)), 1000)))
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"copies of audit records to p: 1 dropped, the queue is full"}, told.texts()); diff != "" {
			t.Error(diff)
		}
		for range 9 {
			c.Record(raw(1000))
		}
		close(release)
		synctest.Wait()
		c.Record([]byte("after"))
		synctest.Wait()
		if n := len(told.texts()); n != 1 {
			t.Errorf("told %d times within a minute", n)
		}
		time.Sleep(reportEvery)
		synctest.Wait()
		if diff := cmp.Diff([]string{"copies of audit records to p: 9 dropped, the queue is full; there is room again after 10 were dropped"}, told.texts()[1:]); diff != "" {
			t.Error(diff)
		}
		mustClose(t, c)
		var first []byte
		for _, l := range p.lines() {
			first = append(first, l[0])
		}
		if string(first) != "abcdefghijklmnopqra" {
			t.Errorf("taken: %s", first)
		}
	})
}

func TestRoomAgainIsToldAlsoWhenTheGapIsOldNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &place{name: "p", send: func(context.Context, []Record) error { <-release; return nil }}
		var told troubles
		c := mustNew(t, Options{Destinations: []Destination{p}, Queue: 20_000, OnLoss: told.add})
		for range 19 {
			c.Record(raw(1000))
		}
		time.Sleep(time.Hour)
		close(release)
		synctest.Wait()
		for range 3 {
			c.Record(raw(1000))
		}
		synctest.Wait()
		want := []string{
			"copies of audit records to p: 1 dropped, the queue is full",
			"copies of audit records to p: there is room again after 1 were dropped",
		}
		if diff := cmp.Diff(want, told.texts()); diff != "" {
			t.Error(diff)
		}
		mustClose(t, c)
	})
}

func TestAPlaceThatIsAwayIsAskedAgainAndGetsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		begin := time.Now()
		p := &place{name: "p", send: func(context.Context, []Record) error {
			asked = append(asked, time.Since(begin))
			if time.Since(begin) < 10*time.Minute {
				return &AgainError{Err: errors.New("away")}
			}
			return nil
		}}
		var told troubles
		c := mustNew(t, Options{Destinations: []Destination{p}, OnLoss: told.add})
		c.Record(raw(10))
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		if s := c.Stats()[0]; s.Sent != 1 {
			t.Errorf("%+v", s)
		}
		if n := len(asked); n < 20 || n > 60 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		for i := 1; i < len(asked); i++ {
			if d := asked[i] - asked[i-1]; d < firstPause/2 || d > lastPause {
				t.Errorf("asked again after %v", d)
			}
		}
		if all := told.texts(); len(all) < 9 || len(all) > 11 || slices.Compact(all)[0] != "copies of audit records to p: away" {
			t.Errorf("told: %q", all)
		}
		mustClose(t, c)
	})
}

func TestAPlaceThatAsksForTimeGetsItWithinReason(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{20 * time.Second: 20 * time.Second, 1000 * time.Hour: mostAsked} {
		synctest.Test(t, func(t *testing.T) {
			begin, tries := time.Now(), 0
			p := &place{name: "p", send: func(context.Context, []Record) error {
				if tries++; tries == 1 {
					return &AgainError{Err: errors.New("busy"), After: asked}
				}
				return nil
			}}
			c := mustNew(t, Options{Destinations: []Destination{p}})
			c.Record(raw(10))
			synctest.Wait()
			for c.Stats()[0].Sent == 0 {
				time.Sleep(time.Second)
				synctest.Wait()
			}
			if d := time.Since(begin); d != want {
				t.Errorf("%v asked for: taken after %v", asked, d)
			}
			mustClose(t, c)
		})
	}
}

func TestAStopAsksOnceMoreAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		isBack := false
		p := &place{name: "p", send: func(context.Context, []Record) error {
			if !isBack {
				return &AgainError{Err: errors.New("away"), After: time.Hour}
			}
			return nil
		}}
		c := mustNew(t, Options{Destinations: []Destination{p}})
		c.Record(raw(10))
		time.Sleep(time.Second)
		synctest.Wait()
		isBack = true
		begin := time.Now()
		mustClose(t, c)
		if d := time.Since(begin); d != 0 || c.Stats()[0].Sent != 1 {
			t.Errorf("after %v: %+v", d, c.Stats())
		}
	})
}

func TestWhatComesAfterCloseIsCountedAsDropped(t *testing.T) {
	p := &notary{place: &place{name: "p"}}
	c := mustNew(t, Options{Destinations: []Destination{p}})
	mustClose(t, c)
	c.Record(raw(10))
	mustClose(t, c)
	if diff := cmp.Diff([]Stats{{Name: "p", Dropped: 1}}, c.Stats()); diff != "" {
		t.Error(diff)
	}
	if err := c.Checkpoints()[0].Send(t.Context(), checkpoint("n", true)); !errors.Is(err, ErrClosed) {
		t.Errorf("a checkpoint: %v", err)
	}
}

func TestALoggerThatBlocksHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &place{name: "p", send: func(context.Context, []Record) error { return errors.New("no") }}
		c := mustNew(t, Options{Destinations: []Destination{p}, OnLoss: func(error) { <-release }})
		for range 100 {
			c.Record(raw(10))
		}
		synctest.Wait()
		if s := c.Stats()[0]; s.Failed != 100 {
			t.Errorf("%+v", s)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		close(release)
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	a := &place{name: "a"}
	for name, o := range map[string]Options{
		"two destinations of one name": {Destinations: []Destination{a, &place{name: "a"}}},
		"a destination that is nil":    {Destinations: []Destination{nil}},
		"no room for a record":         {Destinations: []Destination{a}, Queue: 8192},
		"a negative queue":             {Destinations: []Destination{a}, Queue: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	c := mustNew(t, Options{})
	c.Record(raw(1))
	if len(c.Stats()) != 0 || len(c.Checkpoints()) != 0 {
		t.Error("places that nobody named")
	}
	mustClose(t, c)
}
