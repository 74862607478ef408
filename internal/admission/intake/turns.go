package intake

import (
	"slices"
	"sync"
	"time"
)

// Turns lets few do something at a time, and others wait. Its methods may be called by many at once.
type Turns struct {
	most, room int
	patience   time.Duration

	mu      sync.Mutex // guards the rest
	taken   int
	waiting []*turn // in the order in which they came
}

// turn is one that waits.
type turn struct {
	address string
	// rank is how many of the address waited before it when it came. The lowest has its turn first, and the highest makes room, so that an
	// address that sends one waits for no address that sends many.
	rank int
	over chan bool // it is its turn, or it made room
}

// NewTurns returns Turns of which so many are taken at one time, and for which so many wait, each for so long at most.
func NewTurns(most, room int, patience time.Duration) *Turns {
	return &Turns{most: most, room: room, patience: patience}
}

// Take waits for a turn of a sender, given as an IP address with a port, and returns what ends it. It returns ErrBusy if the turn does not
// come in time, or if too many wait.
func (t *Turns) Take(sender string) (done func(), err error) {
	w, ok := t.enter(hostOf(sender))
	switch {
	case !ok:
		return nil, ErrBusy
	case w == nil:
		return t.leave, nil
	}
	timer := time.NewTimer(t.patience)
	defer timer.Stop()
	select {
	case ok = <-w.over:
	case <-timer.C:
		ok = !t.giveUp(w) && <-w.over
	}
	if !ok {
		return nil, ErrBusy
	}
	return t.leave, nil
}

// enter takes a turn that is free, for which w is nil, or a place among those that wait. Without either, ok is false.
func (t *Turns) enter(address string) (w *turn, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken < t.most {
		t.taken++
		return nil, true
	}
	w = &turn{address: address, over: make(chan bool, 1)}
	last := -1
	for i, o := range t.waiting {
		if o.address == address {
			w.rank++
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

// leave ends a turn, which is then that of the next.
func (t *Turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 {
		t.taken--
		return
	}
	next := 0
	for i, o := range t.waiting {
		if o.rank < t.waiting[next].rank {
			next = i
		}
	}
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
