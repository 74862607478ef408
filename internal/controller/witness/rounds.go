package witness

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/configmaps"
)

// Bounds of rounds.
const (
	// betweenRounds is the least time from the beginning of a round to that of the next, of whichever shard: a replica writes no more often.
	betweenRounds = time.Second
	// maxRound bounds a round, and maxJudging how long it waits for its members: one that is slow delays the others no longer.
	maxRound, maxJudging = 10 * time.Second, 2 * time.Second
	// mostConflicts bounds how often a round reads again because another replica was faster.
	mostConflicts = 5
)

// rounds store the checkpoints of many logs with one write. All requests for logs of a shard that wait when a round begins are its members. The
// round reads the shard; the members hold their checkpoints to what was read; then the round writes all new ones at once, and each member learns
// whether its own was stored. Requests that come meanwhile are members of the shard's next round. Shards have their rounds in the order in
// which requests began to wait for them.
type rounds struct {
	store configmaps.Store
	every time.Duration // betweenRounds

	mu     sync.Mutex // guards the fields below
	shards [shards]waiting
	queue  []int // shards for which members wait, and that are in no round
	runs   bool
	begun  time.Time // the last round
}

// waiting are the members of a shard's next round.
type waiting struct {
	members            []*member
	isQueued, isActive bool
}

func newRounds(store configmaps.Store) *rounds { return &rounds{store: store, every: betweenRounds} }

// join waits for the next round of a log's shard, until the shard was read. The member then writes or leaves, soon.
func (r *rounds) join(ctx context.Context, origin string) (*member, error) {
	m := &member{origin: origin, read: make(chan struct{}), left: make(chan struct{}), stored: make(chan error, 1)}
	r.mu.Lock()
	i := shardOf(origin)
	r.shards[i].members = append(r.shards[i].members, m)
	r.enqueue(i)
	r.mu.Unlock()
	select {
	case <-m.read:
		return m, m.err
	case <-ctx.Done():
		m.leave()
		return nil, ctx.Err()
	}
}

// enqueue lets a shard have a round when its turn comes. The caller holds mu.
func (r *rounds) enqueue(i int) {
	s := &r.shards[i]
	if s.isQueued || s.isActive || len(s.members) == 0 {
		return
	}
	s.isQueued = true
	r.queue = append(r.queue, i)
	if !r.runs {
		r.runs = true
		go r.run()
	}
}

// run begins rounds until no shard waits for one.
func (r *rounds) run() {
	for {
		r.mu.Lock()
		if len(r.queue) == 0 {
			r.runs = false
			r.mu.Unlock()
			return
		}
		pause := time.Until(r.begun.Add(r.every))
		r.mu.Unlock()
		time.Sleep(pause)
		i, members := r.begin()
		go func() {
			r.round(shardName(i), members)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.shards[i].isActive = false
			r.enqueue(i)
		}()
	}
}

// begin takes the shard that waits longest, and its members.
func (r *rounds) begin() (int, []*member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := r.queue[0]
	r.queue = r.queue[1:]
	members := r.shards[i].members
	r.shards[i] = waiting{isActive: true}
	r.begun = time.Now()
	return i, members
}

// round reads a shard, lets the members judge, and stores what they write.
func (r *rounds) round(name string, members []*member) {
	ctx, cancel := context.WithTimeout(context.Background(), maxRound)
	defer cancel()
	s, err := readShard(ctx, r.store, name)
	for _, m := range members {
		m.before, m.err = s.lines[m.origin], err
		close(m.read)
	}
	if err != nil {
		return
	}
	stale := r.findStale(ctx, s.lines)
	r.keep(ctx, name, s, gather(members), stale)
}

// keep stores the members' lines, and settles them.
func (r *rounds) keep(ctx context.Context, name string, s shard, members []*member, stale line) {
	for range mostConflicts {
		if len(members) == 0 {
			return
		}
		var err error
		if members, err = r.attempt(ctx, name, s, members, stale); !errors.Is(err, configmaps.ErrChanged) {
			settle(members, err)
			return
		}
		if s, err = readShard(ctx, r.store, name); err != nil {
			settle(members, err)
			return
		}
	}
	settle(members, evidence.ErrChanged)
}

// attempt tries to store the members' lines, once, and returns the members of whom that is the result. The others are settled: their logs have
// changed since they read them, or have no room.
func (r *rounds) attempt(ctx context.Context, name string, s shard, members []*member, stale line) ([]*member, error) {
	next := maps.Clone(s.lines)
	var writers []*member
	newcomers := 0
	for _, m := range members {
		if next[m.origin] != m.before {
			m.stored <- evidence.ErrChanged
			continue
		}
		next[m.origin] = m.next
		writers = append(writers, m)
		if m.before == (line{}) {
			newcomers++
		}
	}
	if next[stale.Origin] == stale {
		delete(next, stale.Origin)
	}
	text, err := encodeLines(next)
	if err == nil && len(text) > roomForNew && newcomers > 0 {
		writers = without(writers, next, s.lines, func(m *member) bool { return m.before == (line{}) })
		text, err = encodeLines(next)
	}
	if err == nil && len(text) > maxShard { // a few that are long must not keep all the others from being cosigned
		writers = without(writers, next, s.lines, func(m *member) bool { return len(m.next.encode()) > usualLine })
		text, err = encodeLines(next)
	}
	switch {
	case err != nil || len(writers) == 0:
		return writers, err
	case len(text) > maxShard:
		return writers, fmt.Errorf("ConfigMap %s: %w", name, errFull)
	}
	return writers, s.write(ctx, r.store, name, text)
}

// without tells the members that are to be left out that the shard is full, puts back what was there of their logs, and returns the others.
func without(members []*member, next, before content, isOut func(*member) bool) (rest []*member) {
	for _, m := range members {
		if !isOut(m) {
			rest = append(rest, m)
			continue
		}
		if l, ok := before[m.origin]; ok {
			next[m.origin] = l
		} else {
			delete(next, m.origin)
		}
		m.stored <- fmt.Errorf("ConfigMap %s: %w", ShardName(m.origin), errFull)
	}
	return rest
}

// findStale looks at one line, of any log, and returns it if it does not count any more: the log's own ConfigMap was deleted, or made anew.
func (r *rounds) findStale(ctx context.Context, lines content) line {
	for origin, l := range lines { // in no order
		if o, err := readOwn(ctx, r.store, origin); err == nil && !l.follows(o) {
			return l
		}
		return line{}
	}
	return line{}
}

// gather waits until each member has written or left, but not for long, and returns those that write.
func gather(members []*member) (writing []*member) {
	enough := time.NewTimer(maxJudging)
	defer enough.Stop()
	isLate := false
	for _, m := range members {
		if !isLate {
			select {
			case <-m.left:
			case <-enough.C:
				isLate = true
			}
		}
		if m.isWriting() {
			writing = append(writing, m)
		}
	}
	return writing
}

func settle(members []*member, err error) {
	for _, m := range members {
		m.stored <- err
	}
}

// member is one request for a log in a round.
type member struct {
	origin string
	read   chan struct{} // closed when the fields below are set
	before line
	err    error

	left   chan struct{} // closed when next is set, or nothing is written
	stored chan error    // has room for the result

	mu      sync.Mutex // guards the fields below
	hasLeft bool
	next    line
}

// write waits until the round has stored a line in place of the one before. The error is evidence.ErrChanged if that has changed, or if the
// round has gone on.
func (m *member) write(ctx context.Context, next line) error {
	if !m.end(next) {
		return evidence.ErrChanged
	}
	select {
	case err := <-m.stored:
		return changed(err)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave says that nothing is written. After write it does nothing.
func (m *member) leave() { m.end(line{}) }

// end notes what a member writes, once; false if it has left.
func (m *member) end(next line) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hasLeft {
		return false
	}
	m.hasLeft, m.next = true, next
	close(m.left)
	return true
}

// isWriting ends the member, and says whether it has written.
func (m *member) isWriting() bool {
	m.leave()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.next != (line{})
}
