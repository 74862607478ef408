package order

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var wide = Bounds{Running: 4, Waiting: 1000, PerOwner: 1000, PerHouse: 1000, RunningPerOwner: 4, RunningPerHouse: 4}

func disk(n string) Request {
	return Request{Keys: []Key{Object("disk", n)}, Name: "FormatDisk", ID: "id-" + n}
}

func mustEnter(t *testing.T, q *Queue, r Request) func() {
	t.Helper()
	leave, _, err := q.Enter(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return leave
}

func TestKeysMeet(t *testing.T) {
	for _, tt := range []struct {
		name string
		a, b Key
		want bool
	}{
		{"one path", Path(`C:\a\b`), Path(`C:\a\b`), true},
		{"one path in other case and with other separators", Path(`C:\a\b`), Path(`c:/A/B/`), true},
		{"a path and its parent", Path(`C:\a`), Path(`C:\a\b\c`), true},
		{"a path and the drive", Path(`C:\a`), Path(`C:\`), true},
		{"siblings", Path(`C:\a\b`), Path(`C:\a\c`), false},
		{"siblings of which one's name begins like the other's", Path(`C:\a`), Path(`C:\ab`), false},
		{"cousins of one name", Path(`C:\a\x`), Path(`C:\b\x`), false},
		{"other drives", Path(`C:\a`), Path(`D:\a`), false},
		{"one disk", Object("disk", "1"), Object("disk", "1"), true},
		{"two disks", Object("disk", "1"), Object("disk", "2"), false},
		{"a disk and a volume of that name", Object("disk", "1"), Object("volume", "1"), false},
		{"a path and an object that is called so", Path(`C:\a`), Object("path", `C:\a`), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.a.meets(tt.b); got != tt.want {
				t.Errorf("meets = %v", got)
			}
			if got := tt.b.meets(tt.a); got != tt.want {
				t.Errorf("the other way round = %v", got)
			}
		})
	}
}

func TestLaterDoesNotOvertakeWhatItWouldWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(wide)
		var began []string
		var mu sync.Mutex
		var all sync.WaitGroup
		enter := func(name string, r Request) {
			all.Go(func() {
				leave, _, err := q.Enter(t.Context(), r)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				began = append(began, name)
				mu.Unlock()
				time.Sleep(time.Second)
				leave()
			})
			synctest.Wait()
		}
		read := disk("1")
		read.Shared = true
		enter("write 1", disk("1"))
		enter("write again", disk("1"))
		enter("read", read)
		enter("read too", read)
		enter("write last", disk("1"))
		enter("other disk", disk("2"))
		all.Wait()
		got := strings.Join(began, ", ")
		if got != "write 1, other disk, write again, read, read too, write last" && got != "write 1, other disk, write again, read too, read, write last" {
			t.Errorf("began: %s", got)
		}
		if load := q.Load(); load != (Load{}) {
			t.Errorf("%+v is left", load)
		}
	})
}

func TestBoundsRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Bounds{Running: 1, Waiting: 1, PerOwner: 2, PerHouse: 3, RunningPerOwner: 1, RunningPerHouse: 1})
		leave := mustEnter(t, q, disk("1"))
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			_, _, err := q.Enter(ctx, Request{Keys: []Key{Object("disk", "2")}, Owner: "a"})
			waited <- err
		}()
		synctest.Wait()
		if _, _, err := q.Enter(t.Context(), Request{Owner: "b"}); !errors.Is(err, ErrFull) {
			t.Errorf("a third: %v", err)
		}
		if load := q.Load(); load.Running != 1 || load.Waiting != 1 {
			t.Errorf("%+v", load)
		}
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1 other operations run") {
			t.Errorf("the one that was cancelled: %v", err)
		}
		leave()
		leave() // a second time does nothing
		if load := q.Load(); load != (Load{}) {
			t.Errorf("%+v is left", load)
		}
	})
}

func TestOneOwnerLeavesRoom(t *testing.T) {
	q := New(Bounds{Running: 3, Waiting: 3, PerOwner: 2, PerHouse: 6, RunningPerOwner: 2, RunningPerHouse: 3})
	first := mustEnter(t, q, Request{Owner: "a"})
	second := mustEnter(t, q, Request{Owner: "a"})
	if _, _, err := q.Enter(t.Context(), Request{Owner: "a"}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "the caller has 2") {
		t.Errorf("a third of one owner: %v", err)
	}
	other := mustEnter(t, q, Request{Owner: "b"})
	first()
	again := mustEnter(t, q, Request{Owner: "a"})
	for _, leave := range []func(){second, other, again} {
		leave()
	}
	if len(q.owners) != 0 {
		t.Errorf("owners %v are left", q.owners)
	}
}

// Several owners of one house are less than all.
func TestTheOwnersOfOneHouseLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Bounds{Running: 4, Waiting: 4, PerOwner: 4, PerHouse: 6, RunningPerOwner: 2, RunningPerHouse: 3})
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if leave, _, err := q.Enter(ctx, Request{Owner: i % 3, House: "namespace a"}); err == nil {
					<-ctx.Done()
					leave()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if load := q.Load(); load.Running != 3 || load.Waiting != 3 {
			t.Errorf("of one house: %+v", load)
		}
		if _, _, err := q.Enter(ctx, Request{Owner: 7, House: "namespace a"}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "callers of namespace a have 6") {
			t.Errorf("one more of the house: %v", err)
		}
		mustEnter(t, q, Request{Owner: 8, House: "namespace b"})() // comes later, and does not wait
		end()
		all.Wait()
		if len(q.owners)+len(q.houses) != 0 || q.Load() != (Load{}) {
			t.Errorf("%v and %v are left", q.owners, q.houses)
		}
	})
}

func TestOneOwnerDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Bounds{Running: 4, Waiting: 100, PerOwner: 50, PerHouse: 50, RunningPerOwner: 2, RunningPerHouse: 4})
		first := mustEnter(t, q, Request{Owner: "a"})
		defer mustEnter(t, q, Request{Owner: "a"})()
		began := make(chan func(), 1)
		go func() {
			leave, _, err := q.Enter(t.Context(), Request{Owner: "a"})
			if err != nil {
				t.Error(err)
			}
			began <- leave
		}()
		synctest.Wait()
		if load := q.Load(); load.Running != 2 || load.Waiting != 1 {
			t.Errorf("%+v", load)
		}
		mustEnter(t, q, Request{Owner: "b"})() // comes later, and does not wait
		first()
		(<-began)()
	})
}

// begins has a number of requests enter one after the other, each of which takes a second once it has begun,
// and tells when it begins.
func begins(t *testing.T, q *Queue, all *sync.WaitGroup, n int, r func(i int) Request, began func()) {
	t.Helper()
	for i := range n {
		all.Go(func() {
			leave, _, err := q.Enter(t.Context(), r(i))
			if err != nil {
				t.Error(err)
				return
			}
			began()
			time.Sleep(time.Second)
			leave()
		})
		synctest.Wait()
	}
}

// An operation on a directory touches all below it, so it waits for the operations there, and they for it.
func TestAnOwnerOfOneWaitsForNoOwnerOrHouseOfMany(t *testing.T) {
	above, below := []Key{Path(`C:\k`)}, []Key{Path(`C:\k\pods\x`)}
	for name, many := range map[string]func(i int) Request{
		"an owner": func(int) Request { return Request{Keys: above, Owner: "many", House: "a"} },
		"a house":  func(i int) Request { return Request{Keys: above, Owner: i, House: "a"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(Bounds{Running: 8, Waiting: 300, PerOwner: 160, PerHouse: 240, RunningPerOwner: 4, RunningPerHouse: 6})
				var all sync.WaitGroup
				begins(t, q, &all, 160, many, func() {})
				start := time.Now()
				var waits []time.Duration
				begins(t, q, &all, 3, func(int) Request { return Request{Keys: below, Shared: true, Owner: "one", House: "b"} }, func() {
					waits = append(waits, time.Since(start))
				})
				all.Wait()
				if len(waits) != 3 || waits[0] > 2*time.Second || waits[2] > 6*time.Second {
					t.Errorf("waited %v beside operations of a second", waits)
				}
			})
		})
	}
}

func TestAnOwnerOfManyWaitsForNewOnesInEachRoundAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Bounds{Running: 8, Waiting: 1000, PerOwner: 1000, PerHouse: 1000, RunningPerOwner: 8, RunningPerHouse: 8})
		var all sync.WaitGroup
		keys := []Key{Path(`C:\k`)}
		var last time.Duration
		start := time.Now()
		begins(t, q, &all, 10, func(int) Request { return Request{Keys: keys, Owner: "many", House: "a"} }, func() { last = time.Since(start) })
		for i := range 200 { // as many as can run, and always one that has not waited before
			begins(t, q, &all, 1, func(int) Request { return Request{Keys: keys, Owner: i, House: strconv.Itoa(i)} }, func() {})
			time.Sleep(time.Second)
		}
		all.Wait()
		if last > 100*time.Second {
			t.Errorf("the last of ten began after %v, and others went on to come for 200 s", last)
		}
	})
}

func TestWaitingSaysForWhat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(wide)
		defer mustEnter(t, q, disk("1"))()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, _, err := q.Enter(ctx, disk("1"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not begun: FormatDisk (audit id id-1) on the same object runs since 3s") {
			t.Errorf("got %v", err)
		}
	})
}

// TestNoTwoThatConflictRunAtOnce lets many come and go at random, some of whom lose patience.
func TestNoTwoThatConflictRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(wide)
		paths := []string{`C:\a`, `C:\a\b`, `C:\a\b\c`, `C:\a\d`, `C:\e`, `C:\e\f`, `D:\a`}
		var mu sync.Mutex
		running := map[*place]bool{}
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same every time
		var all sync.WaitGroup
		for i := range 2000 {
			p := &place{Request: Request{Shared: random.IntN(3) == 0, Owner: i % 7, ID: strconv.Itoa(i)}}
			for range 1 + random.IntN(2) {
				p.Keys = append(p.Keys, Path(paths[random.IntN(len(paths))]))
			}
			arrive, work := time.Duration(random.IntN(500))*time.Millisecond, time.Duration(random.IntN(20))*time.Millisecond
			patience := time.Duration(random.IntN(60_000)) * time.Millisecond
			all.Go(func() {
				time.Sleep(arrive)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				leave, _, err := q.Enter(ctx, p.Request)
				if err != nil {
					if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrFull) {
						t.Error(err)
					}
					return
				}
				mu.Lock()
				for other := range running {
					if p.conflicts(other) {
						t.Errorf("%s and %s run at once", p.ID, other.ID)
					}
				}
				running[p] = true
				if len(running) > wide.Running {
					t.Errorf("%d run", len(running))
				}
				mu.Unlock()
				time.Sleep(work)
				mu.Lock()
				delete(running, p)
				mu.Unlock()
				leave()
			})
		}
		all.Wait()
		if load := q.Load(); load != (Load{}) || len(q.owners)+len(q.houses) != 0 {
			t.Errorf("%+v is left, of %d owners", load, len(q.owners))
		}
	})
}

// BenchmarkEnter is an operation that waits for nobody, while others run: the cost of order.
func BenchmarkEnter(b *testing.B) {
	for _, others := range []int{0, 10, 60} {
		b.Run("beside-"+strconv.Itoa(others), func(b *testing.B) {
			q := New(Bounds{Running: 64, Waiting: 256, PerOwner: 320, PerHouse: 320, RunningPerOwner: 64, RunningPerHouse: 64})
			for i := range others {
				if _, _, err := q.Enter(b.Context(), Request{Keys: []Key{Path(`C:\var\lib\kubelet\pods\` + strconv.Itoa(i))}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				leave, _, err := q.Enter(b.Context(), Request{Keys: []Key{Path(`C:\var\lib\kubelet\plugins\x`)}, Owner: 1})
				if err != nil {
					b.Fatal(err)
				}
				leave()
			}
		})
	}
}
