package segment

import (
	"slices"
	"sync"
)

// turns pass the log from one goroutine to the next, so that one at a time owns it. The caller that finds it free leads: it writes and flushes for all who wait, and
// hands the log on before it wakes them, so that the disk does not wait for callers. What arrives while the disk flushes goes with the next flush, which the first of
// these callers leads. What no caller is there for is done by the keeper, which has the next turn when it asks for one.
type turns struct {
	mu     sync.Mutex // guards the fields below
	queue  []*pending // in the order of their numbers; empty while the log is free
	owned  bool       // a goroutine has the log, or was told that it has
	waits  bool       // the keeper waits
	closed bool       // no caller joins any more

	keeper chan struct{} // has room for one: the keeper owns the log
}

// news is what a caller that waits is told.
type news int

const (
	isDecided news = iota // about its record
	leads                 // it owns the log, and its record is the first of those that wait
)

// join puts a record at the end of the queue. A caller that does not lead waits for news.
func (t *turns) join(p *pending) (isLeader, isOpen bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false, false
	}
	t.queue = append(t.queue, p)
	isLeader = !t.owned
	t.owned = true
	return isLeader, true
}

// take moves what one flush may hold from the queue to the end of out. The owner calls it.
func (t *turns) take(out []*pending) []*pending {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := batchLen(t.queue)
	out = append(out, t.queue[:n]...)
	t.queue = slices.Delete(t.queue, 0, n)
	return out
}

// handOn gives the log to the keeper if it waits, or to the first caller that does, or to nobody. Once no caller joins any more, the keeper comes last.
func (t *turns) handOn() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch isLast := t.closed && len(t.queue) > 0; {
	case t.waits && !isLast:
		t.waits = false
		t.keeper <- struct{}{}
	case len(t.queue) > 0:
		t.queue[0].told <- leads
	default:
		t.owned = false
	}
}

// own waits for a turn of the keeper and calls do.
func (t *turns) own(do func()) {
	t.mu.Lock()
	t.waits = t.owned
	t.owned = true
	isFree := !t.waits
	t.mu.Unlock()
	if !isFree {
		<-t.keeper
	}
	do()
	t.handOn()
}

// close lets no caller join any more.
func (t *turns) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
}
