package order

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var wide = Bounds{Running: 4, Waiting: 1000, PerOwner: 1000, PerGroup: 1000, RunningPerOwner: 4, RunningPerGroup: 4}

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
		q := New(Bounds{Running: 1, Waiting: 1, PerOwner: 2, PerGroup: 3, RunningPerOwner: 1, RunningPerGroup: 1})
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
	q := New(Bounds{Running: 3, Waiting: 3, PerOwner: 2, PerGroup: 6, RunningPerOwner: 2, RunningPerGroup: 3})
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

// Several owners of one group are less than all.
func TestTheOwnersOfOneGroupLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Bounds{Running: 4, Waiting: 4, PerOwner: 4, PerGroup: 6, RunningPerOwner: 2, RunningPerGroup: 3})
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				if leave, _, err := q.Enter(ctx, Request{Owner: i % 3, Group: "namespace a"}); err == nil {
					<-ctx.Done()
					leave()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if load := q.Load(); load.Running != 3 || load.Waiting != 3 {
			t.Errorf("of one group: %+v", load)
		}
		if _, _, err := q.Enter(ctx, Request{Owner: 7, Group: "namespace a"}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "callers of namespace a have 6") {
			t.Errorf("one more of the group: %v", err)
		}
		mustEnter(t, q, Request{Owner: 8, Group: "namespace b"})() // comes later, and does not wait
		end()
		all.Wait()
		if len(q.owners)+len(q.groups) != 0 || q.Load() != (Load{}) {
			t.Errorf("%v and %v are left", q.owners, q.groups)
		}
	})
}

func TestOneOwnerDoesNotHoldUpTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Bounds{Running: 4, Waiting: 100, PerOwner: 50, PerGroup: 50, RunningPerOwner: 2, RunningPerGroup: 4})
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
func TestAnOwnerOfOneWaitsForNoOwnerOrGroupOfMany(t *testing.T) {
	above, below := []Key{Path(`C:\k`)}, []Key{Path(`C:\k\pods\x`)}
	for name, many := range map[string]func(i int) Request{
		"an owner": func(int) Request { return Request{Keys: above, Owner: "many", Group: "a"} },
		"a group":  func(i int) Request { return Request{Keys: above, Owner: i, Group: "a"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(Bounds{Running: 8, Waiting: 300, PerOwner: 160, PerGroup: 240, RunningPerOwner: 4, RunningPerGroup: 6})
				var all sync.WaitGroup
				begins(t, q, &all, 160, many, func() {})
				start := time.Now()
				var mu sync.Mutex
				var waits []time.Duration
				begins(t, q, &all, 3, func(int) Request { return Request{Keys: below, Shared: true, Owner: "one", Group: "b"} }, func() {
					mu.Lock()
					defer mu.Unlock()
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
		q := New(Bounds{Running: 8, Waiting: 1000, PerOwner: 1000, PerGroup: 1000, RunningPerOwner: 8, RunningPerGroup: 8})
		var all sync.WaitGroup
		keys := []Key{Path(`C:\k`)}
		var last time.Duration
		start := time.Now()
		begins(t, q, &all, 10, func(int) Request { return Request{Keys: keys, Owner: "many", Group: "a"} }, func() { last = time.Since(start) })
		for i := range 200 { // as many as can run, and always one that has not waited before
			begins(t, q, &all, 1, func(int) Request { return Request{Keys: keys, Owner: i, Group: strconv.Itoa(i)} }, func() {})
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

// call is an operation of a scenario.
type call struct {
	at, lasts time.Duration
	r         Request
	patience  time.Duration // 0 means without end
}

const never = -1

// play makes calls, and returns when each of them began.
func play(t *testing.T, q *Queue, calls ...call) []time.Duration {
	t.Helper()
	start, began := time.Now(), make([]time.Duration, len(calls))
	var all sync.WaitGroup
	for i, c := range calls {
		all.Go(func() {
			time.Sleep(c.at)
			ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(c.patience, 24*time.Hour))
			defer cancel()
			leave, _, err := q.Enter(ctx, c.r)
			if began[i] = time.Since(start); err != nil {
				began[i] = never
				return
			}
			time.Sleep(c.lasts)
			leave()
		})
	}
	all.Wait()
	if load := q.Load(); load != (Load{}) || len(q.owners)+len(q.groups) != 0 {
		t.Errorf("%+v is left, of %d owners and %d groups", load, len(q.owners), len(q.groups))
	}
	return began
}

// of is an operation of a container on some paths. A group has the containers whose names begin with its own and a slash.
func of(container string, paths ...string) Request {
	group, _, _ := strings.Cut(container, "/")
	r := Request{Owner: container, Group: group, Name: "Op", ID: container}
	for _, p := range paths {
		r.Keys = append(r.Keys, Path(p))
	}
	return r
}

const (
	own  = `C:\plugins\a` // a directory of a's own
	link = own + `\l`
	pods = `C:\pods` // one that all share
	pod1 = pods + `\1`
	pod2 = pods + `\2`
	sec  = time.Second
)

func TestWhoPassesWhatWaits(t *testing.T) {
	long := 600 * sec
	read := of("b", pods)
	read.Shared = true
	for _, tt := range []struct {
		name  string
		calls []call
		want  []time.Duration // when each begins
	}{
		{"one of two objects is busy with a long operation of the same caller", []call{
			{0, long, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 0}, {2 * sec, sec, of("b", pod1), 0}, {3 * sec, sec, of("c", pod1, pod2), 0},
		}, []time.Duration{0, long, 2 * sec, 3 * sec}},
		{"the caller has no room left", []call{
			{0, long, of("a", `C:\x`), 0}, {0, long, of("a", `C:\y`), 0}, {1 * sec, sec, of("a", pods), 0}, {2 * sec, sec, of("b", pod1), 0},
		}, []time.Duration{0, 0, long, 2 * sec}},
		{"its group has no room left", []call{
			{0, long, of("a/1", `C:\x`), 0}, {0, long, of("a/1", `C:\y`), 0}, {0, long, of("a/2", `C:\z`), 0}, {1 * sec, sec, of("a/2", pods), 0}, {2 * sec, sec, of("b", pod1), 0},
		}, []time.Duration{0, 0, 0, long, 2 * sec}},
		{"a chain: what waits keeps nothing from those that would wait for it alone", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, sec, of("b", own, pod1), 0}, {2 * sec, sec, of("c", own, pod2), 0}, {3 * sec, sec, of("d", pod1, pod2), 0}, {4 * sec, sec, of("e", pods), 0}, {4500 * time.Millisecond, sec, of("f", pod1), 0},
		}, []time.Duration{0, 10 * sec, 11 * sec, 3 * sec, 4 * sec, 5 * sec}},
		{"a passer that is held up does not hold up others either", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 0}, {2 * sec, 20 * sec, of("b", pod2), 0}, {3 * sec, sec, of("c", pod1, pod2), 0}, {4 * sec, sec, of("d", pod1), 0},
		}, []time.Duration{0, 22 * sec, 2 * sec, 23 * sec, 4 * sec}},
		{"reads that pass do so no more once what was there before is over", []call{
			{0, 100 * sec, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 0}, {2 * sec, 4 * sec, read, 0}, {3 * sec, sec, of("c", pod1), 0}, {4 * sec, 4 * sec, read, 0}, {7 * sec, 4 * sec, read, 0},
		}, []time.Duration{0, 100 * sec, 2 * sec, 8 * sec, 4 * sec, 9 * sec}},
		{"once nothing stands before it, it waits for those alone that have passed it", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 0}, {2 * sec, 12 * sec, of("b", pod1), 0}, {11 * sec, sec, of("c", pod2), 0}, {12 * sec, sec, of("d", pod1, pod2), 0},
		}, []time.Duration{0, 14 * sec, 2 * sec, 15 * sec, 16 * sec}},
		{"those of one caller keep their order", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 0}, {2 * sec, sec, of("a", pod1), 0}, {3 * sec, sec, of("b", pod1), 0},
		}, []time.Duration{0, 10 * sec, 11 * sec, 3 * sec}},
		{"two containers of a group do not together hold up the others", []call{
			{0, 10 * sec, of("a/1", own), 0}, {1 * sec, sec, of("a/1", pods, link), 0}, {2 * sec, long, of("a/2", pod1), 0}, {12 * sec, sec, of("b", pod2), 0},
		}, []time.Duration{0, 10 * sec, 11 * sec, 12 * sec}},
		{"it keeps its room while it waits for those that have passed it", []call{
			{0, 10 * sec, of("a", own), 0}, {0, 99 * sec, of("a", `C:\x`), 0}, {1 * sec, sec, of("a", pods, link), 0}, {2 * sec, 18 * sec, of("b", pod1), 0}, {11 * sec, long, of("a", `C:\y`), 0},
		}, []time.Duration{0, 0, 20 * sec, 2 * sec, 21 * sec}},
		{"what is ahead keeps it loose while that runs, too", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, long, of("b", own), 0}, {2 * sec, sec, of("c", pods, link), 0}, {12 * sec, sec, of("d", pod1), 0},
		}, []time.Duration{0, 10 * sec, 610 * sec, 12 * sec}},
		{"what begins at once does not stand before what waits in a later round", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, sec, of("a", own), 1 * sec}, {1500 * time.Millisecond, sec, of("a", pods, link), 0}, {5 * sec, 7 * sec, read, 0}, {11 * sec, sec, read, 0},
		}, []time.Duration{0, never, 12 * sec, 5 * sec, 13 * sec}},
		{"it gives up before its turn", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 2 * sec}, {2 * sec, 5 * sec, of("a", pod1), 0}, {4 * sec, sec, of("b", pods), 0},
		}, []time.Duration{0, never, 3 * sec, 8 * sec}},
		{"it gives up while it waits for those that have passed it", []call{
			{0, 10 * sec, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 19 * sec}, {2 * sec, 98 * sec, of("b", pod1), 0}, {11 * sec, sec, of("c", pod2), 0},
		}, []time.Duration{0, never, 2 * sec, 20 * sec}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := New(Bounds{Running: 8, Waiting: 100, PerOwner: 50, PerGroup: 50, RunningPerOwner: 2, RunningPerGroup: 3})
				if got := play(t, q, tt.calls...); !slices.Equal(got, tt.want) {
					t.Errorf("they began at %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// A passer can be passed itself. What had to wait for one does not wait for all in turn.
func TestAChainOfPassersHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const links = 8
		q := New(Bounds{Running: 64, Waiting: 100, PerOwner: 50, PerGroup: 50, RunningPerOwner: 32, RunningPerGroup: 32})
		place := func(i int) string { return `C:\p` + strconv.Itoa(i) }
		var calls []call
		for i := range links { // each is kept loose by a short operation of its own group, and these end in reverse order
			group := string(rune('a' + i%2))
			busy := `C:\own` + strconv.Itoa(i)
			calls = append(calls, call{0, time.Duration(40-i) * sec, of(group, busy), 0}, call{time.Duration(i+1) * sec, 4 * sec, of(group, place(i), place(i+1), busy+`\l`), 0})
		}
		calls = append(calls, call{time.Duration(40)*sec + sec/2, sec, of("victim", place(0)+`\v`), 0})
		began := play(t, q, calls...)
		if waited := began[len(began)-1] - calls[len(calls)-1].at; waited > 8*sec { // one that has passed it and runs, and itself
			t.Errorf("it waited for %v behind operations of 4 s", waited)
		}
		for i, at := range began[:len(began)-1] {
			if at > 60*sec {
				t.Errorf("%v began after %v", calls[i].r.Keys, at)
			}
		}
	})
}

func TestAnEndlessStreamOfPassersStarvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Bounds{Running: 32, Waiting: 1000, PerOwner: 500, PerGroup: 500, RunningPerOwner: 16, RunningPerGroup: 16})
		calls := []call{{0, 59500 * time.Millisecond, of("a", own), 0}, {1 * sec, sec, of("a", pods, link), 0}}
		for i := range 300 { // at every moment some run
			calls = append(calls, call{time.Duration(i+2) * sec, 5 * sec, of("b"+strconv.Itoa(i%3), pods+`\`+strconv.Itoa(i%10), `C:\`+strconv.Itoa(i%7)), 0})
		}
		began := play(t, q, calls...)
		if began[1] < 60*sec || began[1] > 70*sec {
			t.Errorf("what was passed began after %v, and nothing stood before it after 59.5 s", began[1])
		}
		for i, at := range began[2:] {
			if waited := at - calls[i+2].at; waited > 20*sec {
				t.Errorf("passer %d waited for %v", i, waited)
			}
		}
	})
}

// TestNoTwoThatConflictRunAtOnce lets many come and go at random, some of whom lose patience, and looks at what holds at every step.
func TestNoTwoThatConflictRunAtOnce(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // the same every time
			perOwner := 1 + random.IntN(4)
			q := New(Bounds{Running: 2 + random.IntN(6), Waiting: 150, PerOwner: 1000, PerGroup: 1000, RunningPerOwner: perOwner, RunningPerGroup: perOwner + random.IntN(3)})
			var all sync.WaitGroup
			for range 250 {
				r, arrive, work := anyRequest(random), time.Duration(random.IntN(2000))*time.Millisecond, time.Duration(random.IntN(40))*time.Millisecond
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if random.IntN(4) == 0 {
					ctx, cancel = context.WithTimeout(ctx, arrive+time.Duration(random.IntN(400))*time.Millisecond)
				}
				all.Go(func() {
					defer cancel()
					time.Sleep(arrive)
					leave, _, err := q.Enter(ctx, r)
					mustHold(t, q)
					if err != nil {
						if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrFull) {
							t.Error(err)
						}
						return
					}
					time.Sleep(work)
					leave()
					mustHold(t, q)
				})
			}
			all.Wait() // all that are patient begin
			if load := q.Load(); load != (Load{}) || len(q.owners)+len(q.groups) != 0 {
				t.Errorf("%+v is left, of %d owners", load, len(q.owners))
			}
		})
	}
}

func anyRequest(random *rand.Rand) Request {
	paths := []string{`C:\a`, `C:\a\b`, `C:\a\b\c`, `C:\a\d`, `C:\e`, `C:\e\f`, `C:\e\g`, `D:\a`, `D:\b`, `E:\`}
	owner := random.IntN(7)
	r := Request{Shared: random.IntN(3) == 0, Owner: owner, Group: strconv.Itoa(owner % 4)}
	for range 1 + random.IntN(2) {
		r.Keys = append(r.Keys, Path(paths[random.IntN(len(paths))]))
	}
	return r
}

// mustHold looks whether all is as promised. It counts anew what the queue has counted.
func mustHold(t *testing.T, q *Queue) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.running) > q.bounds.Running {
		t.Errorf("%d run", len(q.running))
	}
	for i, p := range q.running {
		for _, o := range q.running[:i] {
			if p.conflicts(o) {
				t.Errorf("%v and %v run at once", p.Keys, o.Keys)
			}
		}
	}
	for at, p := range q.waiting {
		inTheWay := 0
		for i, o := range slices.Concat(q.running, q.waiting) {
			runs, ahead := i < len(q.running), i < len(q.running)+at
			switch {
			case o == p || !p.conflicts(o):
			case runs && p.firm > 0 && o.firm > p.firm && p.isAheadOf(o):
				t.Error("one has passed another that was firm")
			case runs && o.Group == p.Group && o.joined > p.joined:
				t.Error("one has passed another of its group")
			case runs || o.firm > 0 && (p.firm == 0 || ahead) || ahead && o.Group == p.Group:
				inTheWay++
			}
		}
		if p.firm > 0 && p.before > 0 {
			t.Error("one stands before another that is firm")
		}
		if inTheWay == 0 && len(q.running) < q.bounds.Running && (p.firm > 0 || q.mayBeFirm(p)) {
			t.Error("one waits for nothing")
		}
		mustCount(t, q, p)
	}
}

func mustCount(t *testing.T, q *Queue, p *place) {
	t.Helper()
	want := map[standing]int{}
	for _, o := range slices.Concat(q.running, q.waiting) {
		if p.conflicts(o) {
			want[p.standing(o)]++
		}
	}
	if p.before != want[before] || p.passers != want[passer] {
		t.Errorf("%d stand before one and %d have passed it, counted %d and %d", want[before], want[passer], p.before, p.passers)
	}
}

// BenchmarkEnter is an operation that waits for nobody, while others run: the cost of order.
func BenchmarkEnter(b *testing.B) {
	for _, others := range []int{0, 10, 60} {
		b.Run("beside-"+strconv.Itoa(others), func(b *testing.B) {
			q := New(Bounds{Running: 64, Waiting: 256, PerOwner: 320, PerGroup: 320, RunningPerOwner: 64, RunningPerGroup: 64})
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

// BenchmarkMany is one of many that wait for one at one of their objects and are passed at another, from when it comes until it has left.
func BenchmarkMany(b *testing.B) {
	for _, many := range []int{16, 64, 256, 1024} {
		b.Run(strconv.Itoa(many), func(b *testing.B) {
			q := New(Bounds{Running: 64, Waiting: many, PerOwner: 2, PerGroup: 2, RunningPerOwner: 2, RunningPerGroup: 2})
			enter := func(group string, paths ...string) *place {
				p, err := q.join(of(group, paths...))
				if err != nil {
					b.Fatal(err)
				}
				return p
			}
			for b.Loop() {
				first, all := enter("first", own), make([]*place, 0, many+1)
				for i := range many {
					all = append(all, enter(strconv.Itoa(i), own+`\`+strconv.Itoa(i), pods+`\`+strconv.Itoa(i)))
				}
				all = append(all, enter("passer", pods))
				q.remove(first)
				slices.Reverse(all)
				for _, p := range all {
					q.remove(p)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*many), "ns/one")
		})
	}
}
