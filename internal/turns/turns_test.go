package turns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asking is one that asks for a turn.
type asking struct {
	name string
	done func()
	err  error
	over bool
}

// queue takes note of who had a turn, in the order of their turns.
type queue struct {
	*Turns
	mu  sync.Mutex // guards had
	had []string
}

func (q *queue) ask(address, name string) *asking {
	a := &asking{name: name}
	go func() {
		a.done, a.err = q.Take(context.Background(), strings.Fields(address))
		a.over = true
		q.mu.Lock()
		defer q.mu.Unlock()
		if a.err == nil {
			q.had = append(q.had, name)
		}
	}()
	synctest.Wait()
	return a
}

func TestTurnsAreTakenByFewAndTheirSendersTakeThemInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{Turns: New(1, 8, time.Minute)}
		all := []*asking{q.ask("10.0.0.1", "a0")}
		for _, name := range []string{"a1", "a2", "a3"} {
			all = append(all, q.ask("10.0.0.1", name))
		}
		all = append(all, q.ask("10.0.0.2", "b1"), q.ask("10.0.0.2", "b2"), q.ask("10.0.0.3", "c1"))
		for i := range all {
			if len(q.had) != i+1 {
				t.Fatalf("%v had turns after %d ended", q.had, i)
			}
			for _, a := range all {
				if a.name == q.had[i] {
					a.done()
					break
				}
			}
			synctest.Wait()
		}
		if want := []string{"a0", "a1", "b1", "c1", "a2", "b2", "a3"}; !slices.Equal(q.had, want) {
			t.Errorf("%v, want %v", q.had, want)
		}
		if q.taken != 0 || len(q.waiting) != 0 {
			t.Errorf("%d taken, %d wait", q.taken, len(q.waiting))
		}
	})
}

func TestWhereTooManyWaitTheLastOfTheOneWithMostMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{Turns: New(2, 4, time.Minute)}
		first, second := q.ask("10.0.0.1", "first"), q.ask("10.0.0.1", "second")
		if !first.over || !second.over {
			t.Fatal("two turns were free")
		}
		var many []*asking
		for range 4 {
			many = append(many, q.ask("10.0.0.1", "many"))
		}
		if a := q.ask("10.0.0.1", "more"); !errors.Is(a.err, ErrBusy) {
			t.Errorf("one more of the same: %v", a.err)
		}
		other := q.ask("10.0.0.2", "other")
		if other.over || !errors.Is(many[3].err, ErrBusy) || many[2].over {
			t.Errorf("the other %v, the last %v, the one before %v", other.err, many[3].err, many[2].err)
		}
		first.done()
		second.done()
		synctest.Wait()
		if !other.over || other.err != nil || !many[0].over {
			t.Errorf("it had no turn: %v", other.err)
		}
		other.done()
		many[0].done()
		synctest.Wait()
		many[1].done()
		many[2].done()
		if q.taken != 0 || len(q.waiting) != 0 {
			t.Errorf("%d taken, %d wait", q.taken, len(q.waiting))
		}
	})
}

func TestTheWaitForATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{Turns: New(1, 4, time.Second)}
		first, second := q.ask("10.0.0.1", "first"), q.ask("10.0.0.1", "second")
		time.Sleep(time.Second)
		synctest.Wait()
		if !errors.Is(second.err, ErrBusy) {
			t.Errorf("%v", second.err)
		}
		third := q.ask("10.0.0.1", "third")
		first.done()
		synctest.Wait()
		if third.err != nil || !third.over {
			t.Errorf("%v", third.err)
		}
		third.done()
		if q.taken != 0 || len(q.waiting) != 0 {
			t.Errorf("%d taken, %d wait", q.taken, len(q.waiting))
		}
	})
}

func TestTheWaitForATurnEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1, 4, time.Minute)
		done, err := q.Take(t.Context(), Sender{"a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if _, err := q.Take(ctx, Sender{"b"}); !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		done()
		if q.taken != 0 || len(q.waiting) != 0 {
			t.Errorf("%d taken, %d wait", q.taken, len(q.waiting))
		}
	})
}

func TestOneSenderLeavesATurnForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{Turns: New(3, 8, time.Minute)}
		first, second, third := q.ask("a", "a0"), q.ask("a", "a1"), q.ask("a", "a2")
		if !first.over || !second.over || third.over {
			t.Fatalf("%t, %t, %t", first.over, second.over, third.over)
		}
		other, more := q.ask("b", "b0"), q.ask("b", "b1")
		if !other.over || more.over {
			t.Fatalf("another: %t, %t", other.over, more.over)
		}
		other.done() // its turn is for no further one of the first
		synctest.Wait()
		if third.over || !more.over {
			t.Errorf("%t, %t", third.over, more.over)
		}
		first.done()
		synctest.Wait()
		if !third.over {
			t.Error("it had no turn although there was one")
		}
		second.done()
		third.done()
		more.done()
		if q.taken != 0 || len(q.waiting) != 0 || len(q.names) != 0 {
			t.Errorf("%d taken, %d wait, %v", q.taken, len(q.waiting), q.names)
		}
	})
}

// One user in many namespaces is one, and so are many users in one namespace.
func TestASenderIsAsManyAsTheNameOfItThatWaitsMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{Turns: New(1, 8, time.Minute)}
		all := []*asking{q.ask("u:eve n:1", "e1")}
		for _, name := range []string{"e2", "e3", "e4"} {
			all = append(all, q.ask("u:eve n:"+name, name))
		}
		for _, name := range []string{"f1", "f2"} {
			all = append(all, q.ask("u:"+name+" n:shop", name))
		}
		all = append(all, q.ask("u:other n:other", "o"))
		for i := range all {
			if len(q.had) != i+1 {
				t.Fatalf("%v had turns after %d ended", q.had, i)
			}
			all[slices.IndexFunc(all, func(a *asking) bool { return a.name == q.had[i] })].done()
			synctest.Wait()
		}
		if want := []string{"e1", "e2", "f1", "o", "e3", "f2", "e4"}; !slices.Equal(q.had, want) {
			t.Errorf("%v, want %v", q.had, want)
		}
	})
}

func TestAUserOfManyNamespacesLeavesATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{Turns: New(3, 8, time.Minute)}
		first, second, third := q.ask("u:eve n:1", "e1"), q.ask("u:eve n:2", "e2"), q.ask("u:eve n:3", "e3")
		other := q.ask("u:other n:other", "o")
		if !first.over || !second.over || third.over || !other.over {
			t.Errorf("%t, %t, %t, %t", first.over, second.over, third.over, other.over)
		}
		first.done()
		synctest.Wait()
		for _, a := range []*asking{second, third, other} {
			a.done()
		}
	})
}

// Others that wait all the time, a few of them or ever new ones, keep no request of a sender waiting for ever.
func TestAWaitEndsHoweverManyComeAfterIt(t *testing.T) {
	for name, address := range map[string]func(i int) string{
		"two others":      func(i int) string { return fmt.Sprint("other", i%2) },
		"ever new others": func(i int) string { return fmt.Sprint("other", i) },
		"its own":         func(int) string { return "own" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &queue{Turns: New(1, 64, time.Minute)}
				asked := map[string]*asking{}
				ask := func(address, name string) { asked[name] = q.ask(address, name) }
				for _, name := range []string{"first", "second", "third", "last"} {
					ask("own", name)
				}
				ask(address(-1), "other")
				turns := 0
				for ; len(q.waiting) > 0; turns++ {
					if turns < 40 {
						ask(address(turns), fmt.Sprint("other", turns))
					}
					asked[q.had[turns]].done()
					synctest.Wait()
				}
				asked[q.had[turns]].done()
				if i := slices.Index(q.had, "last"); i > 12 {
					t.Errorf("it had the turn %d: %v", i, q.had)
				}
				if q.taken != 0 || len(q.names) != 0 {
					t.Errorf("%d taken, %v", q.taken, q.names)
				}
			})
		})
	}
}

// A turn that ends may let two begin that waited: one had to leave a turn for others.
func TestATurnThatEndsLetsAllBeginThatMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{Turns: New(3, 8, time.Minute)}
		first, second := q.ask("u:eve n:shop", "first"), q.ask("u:eve n:shop", "second")
		others := []*asking{q.ask("u:eve n:other", "its user's"), q.ask("u:other n:shop", "its namespace's")}
		if others[0].over || others[1].over {
			t.Fatal("no turn was left for others")
		}
		first.done()
		synctest.Wait()
		if !others[0].over || !others[1].over {
			t.Fatalf("%t, %t", others[0].over, others[1].over)
		}
		for _, a := range append(others, second) {
			a.done()
		}
	})
}

// BenchmarkWaiting has the turns of one sender while so many of it wait.
func BenchmarkWaiting(b *testing.B) {
	for _, n := range []int{0, 16, 180, 4000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := New(2, n+1, time.Hour)
			a := Sender{"namespace eve", "user eve"}
			for range 2 {
				q.take(a)
			}
			for range n {
				q.enter(a)
			}
			for b.Loop() {
				q.enter(a)
				q.leave(a)
			}
		})
	}
}

func TestSeparateGroupsWaitForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewSeparateGroups(3, 1, time.Minute)
		take := func(group, sender string) *asking {
			a := &asking{}
			go func() {
				a.done, a.err = g.Take(context.Background(), group, Sender{sender})
				a.over = true
			}()
			synctest.Wait()
			return a
		}
		var all []*asking
		for i := range 100 {
			group := fmt.Sprint(i)
			all = append(all, take(group, "a"), take(group, "a"), take(group, "b"))
		}
		waits, tooMany := take("0", "c"), take("0", "c")
		for i, a := range all {
			if a.done == nil {
				t.Fatalf("turn %d was not taken: over %t, %v", i, a.over, a.err)
			}
		}
		if waits.over || !errors.Is(tooMany.err, ErrBusy) {
			t.Errorf("the fourth of a group: over %t, the fifth %v", waits.over, tooMany.err)
		}
		for _, a := range all {
			a.done()
		}
		synctest.Wait()
		if waits.done == nil {
			t.Fatal("its turn did not come")
		}
		waits.done()
		if len(g.groups) != 0 {
			t.Errorf("%d groups are left", len(g.groups))
		}
	})
}
