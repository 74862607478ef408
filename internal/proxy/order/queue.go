package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Bounds of a Queue.
type Bounds struct {
	Running  int // operations at once
	Waiting  int // operations that have not begun
	PerOwner int // of one owner, running and waiting together
	PerHouse int // of all owners of one house
	// RunningPerOwner is how many of one owner run at once, so that an owner of long operations does not hold up the others.
	RunningPerOwner int
	RunningPerHouse int
}

// ErrFull means that a bound is reached. Trying again later helps.
var ErrFull = errors.New("too many operations")

// Request asks for a place.
type Request struct {
	Keys   []Key
	Shared bool   // the operation changes nothing, so it may run beside others that change nothing
	Owner  any    // whom the place counts for; comparable
	House  string // what several owners may belong to, so that it counts for all of them
	Name   string // the operation, and under which id its record is found: what others are told that they wait for
	ID     string
}

// Queue orders operations. Those that wait begin in rounds, in each of which every owner and every house has one, so that an owner of one operation does not wait
// for all those of an owner of many, whatever objects they touch. An operation does not overtake an earlier one that it conflicts with, and a new one joins the
// round after that of the last one that began at the earliest, so that none waits for ever.
type Queue struct {
	bounds Bounds

	mu      sync.Mutex // guards what follows
	running []*place
	waiting []*place // by round, and within one by arrival
	round   int      // of the last one that waited and began
	owners  map[any]load
	houses  map[string]load
}

// load is what an owner or a house has in the line.
type load struct {
	places, running int
	round           int // of its last place that waits, if one does
}

// isWaiting says whether one of its places has not begun.
func (l load) isWaiting() bool { return l.places > l.running }

// add changes what one of several has, and forgets it once that is nothing.
func add[K comparable](of map[K]load, k K, places, running, round int) {
	l := of[k]
	l.places, l.running = l.places+places, l.running+running
	if round > 0 {
		l.round = round
	}
	if of[k] = l; l.places == 0 {
		delete(of, k)
	}
}

type place struct {
	Request
	arrived  time.Time
	began    time.Time // zero while it waits
	round    int
	blockers int           // places that run, or wait before it, and that it must wait for
	turn     chan struct{} // closed when it begins; nil if it began at once
	left     bool
}

// New returns an empty queue.
func New(bounds Bounds) *Queue {
	return &Queue{bounds: bounds, owners: map[any]load{}, houses: map[string]load{}}
}

// Enter waits until nothing that came before is in the way, and returns the function by which the operation leaves; it may
// be called more than once. waited says that the operation did not begin at once: what was known before may have changed. The
// error is ErrFull, or the context's, with what was waited for.
func (q *Queue) Enter(ctx context.Context, r Request) (leave func(), waited bool, err error) {
	p, err := q.join(r)
	if err != nil {
		return nil, false, err
	}
	leave = func() { q.remove(p) }
	if p.turn == nil {
		return leave, false, nil
	}
	select {
	case <-p.turn:
		return leave, true, nil
	case <-ctx.Done():
		why := q.reason(p)
		leave()
		return nil, true, fmt.Errorf("%s: %w", why, ctx.Err())
	}
}

func (q *Queue) join(r Request) (*place, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n := q.owners[r.Owner].places; n >= q.bounds.PerOwner {
		return nil, fmt.Errorf("%w: the caller has %d begun or waiting, the most it may have", ErrFull, n)
	}
	if n := q.houses[r.House].places; n >= q.bounds.PerHouse {
		return nil, fmt.Errorf("%w: callers of %s have %d begun or waiting, the most they may have", ErrFull, r.House, n)
	}
	now := time.Now()
	p := &place{Request: r, arrived: now, round: q.roundOf(r)}
	at, _ := slices.BinarySearchFunc(q.waiting, p.round+1, func(o *place, round int) int { return cmp.Compare(o.round, round) })
	p.blockers = p.conflictsWith(q.running) + p.conflictsWith(q.waiting[:at])
	if (p.blockers > 0 || !q.hasRoom(p)) && len(q.waiting) >= q.bounds.Waiting {
		return nil, fmt.Errorf("%w: %d run and %d wait, the most that may", ErrFull, len(q.running), len(q.waiting))
	}
	for _, later := range q.waiting[at:] {
		if later.conflicts(p) {
			later.blockers++
		}
	}
	q.waiting = slices.Insert(q.waiting, at, p)
	q.count(p, 1, 0, 0)
	q.advance(now)
	if p.began.IsZero() {
		p.turn = make(chan struct{})
		q.count(p, 0, 0, p.round)
	}
	return p, nil
}

// roundOf is the first round in which neither the owner nor the house of a request has a place. q.mu must be held.
func (q *Queue) roundOf(r Request) int {
	round := q.round + 1
	for _, l := range []load{q.owners[r.Owner], q.houses[r.House]} {
		if l.isWaiting() {
			round = max(round, l.round+1)
		}
	}
	return round
}

func (q *Queue) remove(p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	later := q.waiting
	if p.began.IsZero() {
		at := slices.Index(q.waiting, p)
		q.waiting = slices.Delete(q.waiting, at, at+1)
		later = q.waiting[at:]
		q.count(p, -1, 0, 0)
	} else {
		at := slices.Index(q.running, p)
		q.running = slices.Delete(q.running, at, at+1)
		q.count(p, -1, -1, 0)
	}
	for _, o := range later {
		if o.conflicts(p) {
			o.blockers--
		}
	}
	q.advance(time.Time{})
}

// advance begins what may begin; it looks at the clock only if it must. q.mu must be held.
func (q *Queue) advance(now time.Time) {
	for at := 0; at < len(q.waiting) && len(q.running) < q.bounds.Running; {
		p := q.waiting[at]
		if p.blockers > 0 || !q.hasRoom(p) {
			at++
			continue
		}
		if now.IsZero() {
			now = time.Now()
		}
		p.began = now
		q.waiting = slices.Delete(q.waiting, at, at+1)
		q.running = append(q.running, p)
		q.count(p, 0, 1, 0)
		if p.turn != nil {
			q.round = max(q.round, p.round)
			close(p.turn)
		}
	}
}

// hasRoom says whether one more operation of an owner may run. q.mu must be held.
func (q *Queue) hasRoom(p *place) bool {
	return len(q.running) < q.bounds.Running && q.owners[p.Owner].running < q.bounds.RunningPerOwner && q.houses[p.House].running < q.bounds.RunningPerHouse
}

// count keeps the books. q.mu must be held.
func (q *Queue) count(p *place, places, running, round int) {
	add(q.owners, p.Owner, places, running, round)
	add(q.houses, p.House, places, running, round)
}

// conflictsWith counts those of others that p may not run beside.
func (p *place) conflictsWith(others []*place) (n int) {
	for _, o := range others {
		if p.conflicts(o) {
			n++
		}
	}
	return n
}

func (p *place) conflicts(other *place) bool {
	if p.Shared && other.Shared {
		return false
	}
	for _, a := range p.Keys {
		for _, b := range other.Keys {
			if a.meets(b) {
				return true
			}
		}
	}
	return false
}

// reason says what a place waits for.
func (q *Queue) reason(p *place) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, earlier := range slices.Concat(q.running, q.waiting) {
		if earlier == p {
			break
		}
		if p.conflicts(earlier) {
			since, doing := earlier.began, "runs"
			if since.IsZero() {
				since, doing = earlier.arrived, "waits"
			}
			return fmt.Sprintf("not begun: %s (audit id %s) on the same object %s since %v", earlier.Name, earlier.ID, doing, time.Since(since).Round(time.Millisecond))
		}
	}
	return fmt.Sprintf("not begun: %d other operations run", len(q.running))
}

// Load is how full a queue is.
type Load struct {
	Running, Waiting int
	Oldest           time.Duration // of the operation that has run longest; 0 if none runs
}

// Load returns how full the queue is now.
func (q *Queue) Load() Load {
	q.mu.Lock()
	defer q.mu.Unlock()
	load := Load{Running: len(q.running), Waiting: len(q.waiting)}
	for _, p := range q.running {
		load.Oldest = max(load.Oldest, time.Since(p.began))
	}
	return load
}

// Overdue is an operation that has run for long.
type Overdue struct {
	Name, ID string // as in its Request
	Ran      time.Duration
}

// Overdue returns the operations that have run for longer than limit.
func (q *Queue) Overdue(limit time.Duration) []Overdue {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []Overdue
	for _, p := range q.running {
		if ran := time.Since(p.began); ran > limit {
			list = append(list, Overdue{p.Name, p.ID, ran})
		}
	}
	return list
}
