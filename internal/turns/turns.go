// Package turns bounds concurrent work, and shares it fairly among waiting clients.
package turns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// ErrBusy means that a turn did not come in time, or that too many wait for one.
var ErrBusy = errors.New("too many at once")

// Turns bounds how many clients work at a time; others wait. Its methods may be called by many at once.
type Turns struct {
	most, room int
	patience   time.Duration

	mu      sync.Mutex // guards the rest
	taken   int
	round   int                // of the last turn of one that waited
	names   map[string]account // of the senders that have turns or wait
	waiting []*turn            // in the order in which they have their turns; one that may have none yet is passed over
}

// turn is one that waits. Each name of a sender has one turn in a round, so that a sender of one waits for no sender of many. The first round is the one
// after that of the last turn, so that a new sender does not pass over those that have waited longer either, however many new ones come.
type turn struct {
	sender Sender
	round  int
	over   chan bool // it is its turn, or it made room
}

// account is what the senders of one name have.
type account struct {
	turns, waiting int
	last           int // round of those that wait
}

// Sender identifies the party that asks for a turn by one or more names, such as a user and a namespace. The name with the most turns counts. Names of different
// kinds must differ.
type Sender []string

// New returns Turns of which so many are taken at one time, and for which so many wait, each for so long at most. Of three or more, one sender has all
// but one.
func New(most, room int, patience time.Duration) *Turns {
	return &Turns{most: most, room: room, patience: patience, names: map[string]account{}}
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
	w = &turn{sender: sender, round: t.round + 1, over: make(chan bool, 1)}
	for _, name := range sender {
		if a := t.names[name]; a.waiting > 0 {
			w.round = max(w.round, a.last+1)
		}
	}
	if len(t.waiting) >= t.room {
		last := len(t.waiting) - 1
		if last < 0 || t.waiting[last].round <= w.round {
			return nil, false
		}
		t.waiting[last].over <- false
		t.remove(last)
	}
	i, _ := slices.BinarySearchFunc(t.waiting, w.round+1, func(o *turn, round int) int { return cmp.Compare(o.round, round) })
	t.waiting = slices.Insert(t.waiting, i, w)
	t.enterNames(sender, func(a *account) {
		a.waiting++
		a.last = w.round
	})
	return w, true
}

// isFree says whether the sender may have a turn now.
func (t *Turns) isFree(sender Sender) bool {
	const few = 2
	has := func(name string) bool { return t.names[name].turns >= t.most-1 } // all but one
	return t.taken < t.most && (t.most <= few || !slices.ContainsFunc(sender, has))
}

func (t *Turns) take(sender Sender) {
	t.taken++
	t.enterNames(sender, func(a *account) { a.turns++ })
}

// leave ends a turn of a sender, which is then that of the next.
func (t *Turns) leave(sender Sender) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken--
	t.enterNames(sender, func(a *account) { a.turns-- })
	for t.taken < t.most {
		next := slices.IndexFunc(t.waiting, func(o *turn) bool { return t.isFree(o.sender) })
		if next < 0 {
			return
		}
		w := t.waiting[next]
		t.remove(next)
		t.take(w.sender)
		t.round = max(t.round, w.round)
		w.over <- true
	}
}

// giveUp ends the wait of w, unless it is over.
func (t *Turns) giveUp(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, w)
	if i >= 0 {
		t.remove(i)
	}
	return i >= 0
}

// remove takes one off those that wait.
func (t *Turns) remove(i int) {
	sender := t.waiting[i].sender
	t.waiting = slices.Delete(t.waiting, i, i+1)
	t.enterNames(sender, func(a *account) { a.waiting-- })
}

// enterNames changes the account of each name of a sender.
func (t *Turns) enterNames(sender Sender, change func(*account)) {
	for _, name := range sender {
		a := t.names[name]
		if change(&a); a.turns == 0 && a.waiting == 0 {
			delete(t.names, name)
		} else {
			t.names[name] = a
		}
	}
}
