// Package turns bounds concurrent work, and shares it fairly among the parties that wait for it.
package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrBusy means that a turn did not come in time, or that too many wait for one.
var ErrBusy = errors.New("too many at once")

// Turns lets few do something at a time, and others wait. Its methods may be called by many at once.
type Turns struct {
	most, room int
	patience   time.Duration

	mu      sync.Mutex // guards the rest
	taken   int
	by      map[string]int // names of those who have turns, to how many
	waiting []*turn        // in the order in which they came
}

// turn is one that waits.
type turn struct {
	sender Sender
	// rank is how many of one name of the sender waited before it when it came, of the name with most. The lowest has its turn first, and the highest
	// makes room, so that a sender of one waits for no sender of many.
	rank int
	over chan bool // it is its turn, or it made room
}

// Sender identifies the party that asks for a turn by one or more names, such as a user and a namespace. The name with the most turns counts. Names of different
// kinds must differ.
type Sender []string

// New returns Turns of which so many are taken at one time, and for which so many wait, each for so long at most. Of three or more, one sender has all
// but one.
func New(most, room int, patience time.Duration) *Turns {
	return &Turns{most: most, room: room, patience: patience, by: map[string]int{}}
}

// Take waits for a turn of a sender, and returns what ends it. It returns ErrBusy if the turn does not come in time, or if too many
// wait, and the cause of ctx if that ends before.
func (t *Turns) Take(ctx context.Context, sender Sender) (done func(), err error) {
	w, ok := t.enter(sender)
	switch {
	case !ok:
		return nil, ErrBusy
	case w == nil:
		return func() { t.leave(sender) }, nil
	}
	timer := time.NewTimer(t.patience)
	defer timer.Stop()
	select {
	case ok = <-w.over:
	case <-timer.C:
		ok = !t.giveUp(w) && <-w.over
	case <-ctx.Done():
		if ok = !t.giveUp(w) && <-w.over; !ok {
			return nil, context.Cause(ctx)
		}
	}
	if !ok {
		return nil, ErrBusy
	}
	return func() { t.leave(sender) }, nil
}

// enter takes a turn that is free, for which w is nil, or a place among those that wait. Without either, ok is false.
func (t *Turns) enter(sender Sender) (w *turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isFree(sender) {
		t.take(sender)
		return nil, true
	}
	w = &turn{sender: sender, over: make(chan bool, 1)}
	last, before := -1, make([]int, len(sender))
	for i, o := range t.waiting {
		for j, name := range sender {
			if slices.Contains(o.sender, name) {
				before[j]++
				w.rank = max(w.rank, before[j])
			}
		}
		if last < 0 || o.rank >= t.waiting[last].rank {
			last = i
		}
	}
	if len(t.waiting) >= t.room {
		if last < 0 || t.waiting[last].rank <= w.rank {
			return nil, false
		}
		t.waiting[last].over <- false
		t.waiting = slices.Delete(t.waiting, last, last+1)
	}
	t.waiting = append(t.waiting, w)
	return w, true
}

// isFree says whether the sender may have a turn now.
func (t *Turns) isFree(sender Sender) bool {
	const few = 2
	has := func(name string) bool { return t.by[name] >= t.most-1 } // all but one
	return t.taken < t.most && (t.most <= few || !slices.ContainsFunc(sender, has))
}

func (t *Turns) take(sender Sender) {
	t.taken++
	for _, name := range sender {
		t.by[name]++
	}
}

// leave ends a turn of a sender, which is then that of the next.
func (t *Turns) leave(sender Sender) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	for _, name := range sender {
		if t.by[name]--; t.by[name] == 0 {
			delete(t.by, name)
		}
	}
	next := -1
	for i, o := range t.waiting {
		if t.isFree(o.sender) && (next < 0 || o.rank < t.waiting[next].rank) {
			next = i
		}
	}
	if next < 0 {
		return
	}
	t.take(t.waiting[next].sender)
	t.waiting[next].over <- true
	t.waiting = slices.Delete(t.waiting, next, next+1)
}

// giveUp ends the wait of w, unless it is over.
func (t *Turns) giveUp(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	return i >= 0
}
