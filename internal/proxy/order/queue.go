package order

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"
)

// Bounds of a Queue.
type Bounds struct {
	Running  int // operations at once
	Waiting  int // operations that have not begun
	PerOwner int // of one owner, running and waiting together
	PerGroup int // of all owners of one group
	// RunningPerOwner is how many of one owner run at once, so that an owner of long operations does not hold up the others.
	RunningPerOwner int
	RunningPerGroup int
}

// ErrFull means that a bound is reached. Trying again later helps.
var ErrFull = errors.New("too many operations")

// Request asks for a place.
type Request struct {
	Keys   []Key
	Shared bool   // the operation changes nothing, so it may run beside others that change nothing
	Owner  any    // the party that the place counts for; comparable
	Group  string // the group of the owner; the place counts for it too
	Name   string // the operation, and under which id its record is found: what others are told that they wait for
	ID     string
}

// Queue orders operations. Those that wait begin in rounds, in each of which every owner and every group has one, so that an owner of one operation does not wait
// for all those of an owner of many, whatever objects they touch. A new one joins the round after that of the last one that began at the earliest, so that none waits for ever.
//
// What waits is loose or firm. It is loose while something stands before it, and then holds none of its objects: operations of other groups that conflict with it alone pass
// it, so that one of two objects does not hold up all the others at the free one. Those of its own group never pass it, so that these keep their order. Once nothing stands
// before it any more, and its owner and group have room, it is firm: nothing that comes passes it, and it waits only for what has passed it and runs. Of two that are firm the
// one ahead in the line begins first, whichever was firm first: what passed it and then had to wait itself holds it up no longer, so that no chain of passers does.
// What is firm waits only for what runs and for what is firm and ahead, and what is loose only for what is firm and for its own group, so that both come to an end.
type Queue struct {
	bounds Bounds

	mu      sync.Mutex // guards the fields below
	running []*place
	waiting []*place // by round, and within one by arrival
	round   int      // of the last one that waited and began
	steps   int      // how often one joined or became firm, which tells what was earlier
	owners  map[any]load
	groups  map[string]load
}

// load is what an owner or a group has in the line.
type load struct {
	places int
	firm   int // those that run or are firm
	round  int // of its last place that is loose, if one is
}

// hasLoose says whether one of its places is loose.
func (l load) hasLoose() bool { return l.places > l.firm }

// add changes what one of several has, and forgets it once that is nothing.
func add[K comparable](of map[K]load, k K, places, firm, round int) {
	l := of[k]
	l.places, l.firm = l.places+places, l.firm+firm
	if round > 0 {
		l.round = round
	}
	if of[k] = l; l.places == 0 {
		delete(of, k)
	}
}

type place struct {
	Request
	arrived time.Time
	began   time.Time // zero while it waits
	round   int
	joined  int           // the step at which it came
	firm    int           // the step from which nothing passes it; zero while it is loose
	before  int           // places that keep it loose
	passers int           // of a loose one, the places that are firm or run and have passed it; of a firm one, those that it waits for
	turn    chan struct{} // closed when it begins; nil if it began at once
	left    bool
}

// behindAll is the round of one that did not wait: it has passed all that are loose.
const behindAll = math.MaxInt

// New returns an empty queue.
func New(bounds Bounds) *Queue {
	return &Queue{bounds: bounds, owners: map[any]load{}, groups: map[string]load{}}
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
	if n := q.groups[r.Group].places; n >= q.bounds.PerGroup {
		return nil, fmt.Errorf("%w: callers of %s have %d begun or waiting, the most they may have", ErrFull, r.Group, n)
	}
	p := &place{Request: r, arrived: time.Now(), round: q.roundOf(r), joined: q.step()}
	p.before = p.countBefore(q.running) + p.countBefore(q.waiting)
	if len(q.running) < q.bounds.Running && q.mayBeFirm(p) {
		p.round = behindAll
		q.count(p, 1, 0, 0)
		q.makeFirm(p)
		q.begin(p, p.arrived)
		return p, nil
	}
	if len(q.waiting) >= q.bounds.Waiting {
		return nil, fmt.Errorf("%w: %d run and %d wait, the most that may", ErrFull, len(q.running), len(q.waiting))
	}
	at, _ := slices.BinarySearchFunc(q.waiting, p.round+1, func(o *place, round int) int { return cmp.Compare(o.round, round) })
	q.waiting = slices.Insert(q.waiting, at, p)
	q.count(p, 1, 0, p.round)
	p.turn = make(chan struct{})
	return p, nil
}

// step returns the number of the next step. q.mu must be held.
func (q *Queue) step() int {
	q.steps++
	return q.steps
}

// roundOf is the first round in which neither the owner nor the group of a request has a loose place. q.mu must be held.
func (q *Queue) roundOf(r Request) int {
	round := q.round + 1
	for _, l := range []load{q.owners[r.Owner], q.groups[r.Group]} {
		if l.hasLoose() {
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
	line := &q.running
	if p.began.IsZero() {
		line = &q.waiting
	}
	at := slices.Index(*line, p)
	*line = slices.Delete(*line, at, at+1)
	firm := 0
	if p.firm > 0 {
		firm = 1
	}
	q.count(p, -1, -firm, 0)
	for _, o := range q.waiting {
		o.note(p, -1)
	}
	q.advance()
}

// advance makes firm what may be, and begins what may begin. One look at each is enough, as none of them makes way for another. q.mu must be held.
func (q *Queue) advance() {
	var now time.Time
	for at := 0; at < len(q.waiting) && len(q.running) < q.bounds.Running; {
		p := q.waiting[at]
		if p.firm == 0 && q.mayBeFirm(p) {
			q.makeFirm(p)
		}
		if p.firm == 0 || p.passers > 0 {
			at++
			continue
		}
		if now.IsZero() {
			now = time.Now()
		}
		q.waiting = slices.Delete(q.waiting, at, at+1)
		q.round = max(q.round, p.round)
		q.begin(p, now)
		close(p.turn)
	}
}

// mayBeFirm says whether nothing keeps a place loose. What its own owner and group have too many of does: others need not wait for that. q.mu must be held.
func (q *Queue) mayBeFirm(p *place) bool {
	return p.before == 0 && q.owners[p.Owner].firm < q.bounds.RunningPerOwner && q.groups[p.Group].firm < q.bounds.RunningPerGroup
}

// makeFirm lets nothing that comes pass a place any more. It has its owner's and its group's room from now on, so that what they enter later does not keep it waiting
// while others wait for it. Its own group knows of it already. q.mu must be held.
func (q *Queue) makeFirm(p *place) {
	p.firm, p.passers = q.step(), 0
	q.count(p, 0, 1, 0)
	for _, o := range q.running {
		p.note(o, 1)
	}
	for _, o := range q.waiting {
		p.note(o, 1)
		if o.Group != p.Group {
			o.note(p, 1)
		}
	}
}

// begin lets one run. q.mu must be held.
func (q *Queue) begin(p *place, now time.Time) {
	p.began = now
	q.running = append(q.running, p)
}

// count changes the counts of a place's owner and group. q.mu must be held.
func (q *Queue) count(p *place, places, firm, round int) {
	add(q.owners, p.Owner, places, firm, round)
	add(q.groups, p.Group, places, firm, round)
}

// countBefore counts those of others that stand before one that has just come.
func (p *place) countBefore(others []*place) (n int) {
	for _, o := range others {
		if p.standing(o) == before && p.conflicts(o) {
			n++
		}
	}
	return n
}

// note adds n to what waits for another place, if this one does.
func (p *place) note(other *place, n int) {
	how := p.standing(other)
	if how == apart || !p.conflicts(other) {
		return
	}
	if how == passer {
		p.passers += n
	} else {
		p.before += n
	}
}

// standing is how another place stands to one that waits, if they conflict.
type standing int

const (
	apart  standing = iota // it is not in the way: it waits for this one, or it is loose and of another group
	before                 // it keeps this one loose
	passer                 // it became firm while this one was loose, although this one is ahead of it; if this one is firm, it runs, or is firm and ahead
)

func (p *place) standing(other *place) standing {
	sameGroup := p.Group == other.Group
	switch {
	case p == other:
		return apart
	case p.firm > 0 && (!other.began.IsZero() || other.firm > 0 && other.isAheadOf(p)):
		return passer
	case p.firm > 0:
		return apart
	case other.firm == 0:
		if sameGroup && other.isAheadOf(p) {
			return before
		}
		return apart
	case !sameGroup && p.joined < other.firm && p.isAheadOf(other):
		return passer
	}
	return before
}

// isAheadOf says whether a place comes earlier in the line.
func (p *place) isAheadOf(other *place) bool {
	if p.round != other.round {
		return p.round < other.round
	}
	return p.joined < other.joined
}

func (p *place) conflicts(other *place) bool {
	if p.Shared && other.Shared {
		return false
	}
	return slices.ContainsFunc(p.Keys, func(k Key) bool { return slices.ContainsFunc(other.Keys, k.meets) })
}

// reason says what a place waits for.
func (q *Queue) reason(p *place) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, earlier := range slices.Concat(q.running, q.waiting) {
		if p.standing(earlier) != apart && p.conflicts(earlier) {
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
