package order

import (
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

// Queue is a line of operations. Nobody overtakes whom he would have to wait for, so nobody waits for ever while others pass.
type Queue struct {
	bounds Bounds

	mu      sync.Mutex // guards what follows
	line    []*place   // in the order of arrival, running and waiting
	running int
	owners  map[any]load
	houses  map[string]load
}

// load is what an owner or a house has in the line.
type load struct{ places, running int }

// add changes what one of several has, and forgets it once that is nothing.
func add[K comparable](of map[K]load, k K, places, running int) {
	l := load{of[k].places + places, of[k].running + running}
	if of[k] = l; l == (load{}) {
		delete(of, k)
	}
}

type place struct {
	Request
	arrived  time.Time
	began    time.Time     // zero while it waits
	blockers int           // places before it that it must wait for
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
	p := &place{Request: r, arrived: now}
	for _, earlier := range q.line {
		if p.conflicts(earlier) {
			p.blockers++
		}
	}
	if waiting := len(q.line) - q.running; (p.blockers > 0 || !q.hasRoom(p)) && waiting >= q.bounds.Waiting {
		return nil, fmt.Errorf("%w: %d run and %d wait, the most that may", ErrFull, q.running, waiting)
	}
	q.line = append(q.line, p)
	q.count(p, 1, 0)
	q.advance(now)
	if p.began.IsZero() {
		p.turn = make(chan struct{})
	}
	return p, nil
}

func (q *Queue) remove(p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.left {
		return
	}
	p.left = true
	at := slices.Index(q.line, p)
	q.line = slices.Delete(q.line, at, at+1)
	if !p.began.IsZero() {
		q.count(p, 0, -1)
	}
	q.count(p, -1, 0)
	for _, later := range q.line[at:] {
		if later.conflicts(p) {
			later.blockers--
		}
	}
	q.advance(time.Time{})
}

// advance begins what may begin; it looks at the clock only if it must. q.mu must be held.
func (q *Queue) advance(now time.Time) {
	if q.running == len(q.line) {
		return
	}
	for _, p := range q.line {
		if q.running >= q.bounds.Running {
			return
		}
		if p.began.IsZero() && p.blockers == 0 && q.hasRoom(p) {
			if now.IsZero() {
				now = time.Now()
			}
			p.began = now
			q.count(p, 0, 1)
			if p.turn != nil {
				close(p.turn)
			}
		}
	}
}

// hasRoom says whether one more operation of an owner may run. q.mu must be held.
func (q *Queue) hasRoom(p *place) bool {
	return q.running < q.bounds.Running && q.owners[p.Owner].running < q.bounds.RunningPerOwner && q.houses[p.House].running < q.bounds.RunningPerHouse
}

// count keeps the books. q.mu must be held.
func (q *Queue) count(p *place, places, running int) {
	q.running += running
	add(q.owners, p.Owner, places, running)
	add(q.houses, p.House, places, running)
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
	for _, earlier := range q.line {
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
	return fmt.Sprintf("not begun: %d other operations run", q.running)
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
	load := Load{Running: q.running, Waiting: len(q.line) - q.running}
	for _, p := range q.line {
		if !p.began.IsZero() {
			load.Oldest = max(load.Oldest, time.Since(p.began))
		}
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
	for _, p := range q.line {
		if ran := time.Since(p.began); !p.began.IsZero() && ran > limit {
			list = append(list, Overdue{p.Name, p.ID, ran})
		}
	}
	return list
}
