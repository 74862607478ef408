package turns

import (
	"context"
	"math"
	"sync"
	"time"
)

// Groups are Turns that groups take in turn, whatever names their members give, and that the members of a group share among themselves. Its methods may be
// called by many at once.
type Groups struct {
	turns    *Turns // of groups
	share    int    // turns of each group
	patience time.Duration

	mu     sync.Mutex // guards groups
	groups map[string]*group
}

type group struct {
	turns   *Turns
	members int // that have turns or wait
}

// NewGroups returns Groups that take so many turns at one time. So many members of each group wait for those of its own that are next, and so many of these
// for other groups; each waits for so long at most.
func NewGroups(most, room int, patience time.Duration) *Groups {
	return &Groups{turns: New(most, room, patience), share: most, patience: patience, groups: map[string]*group{}}
}

// NewSeparateGroups returns Groups of which each takes so many turns at one time, and waits for no other.
func NewSeparateGroups(share, room int, patience time.Duration) *Groups {
	return &Groups{turns: New(math.MaxInt, room, patience), share: share, patience: patience, groups: map[string]*group{}}
}

// Take is Turns.Take for a sender in a group.
func (g *Groups) Take(ctx context.Context, name string, sender Sender) (done func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, g.patience, ErrBusy)
	defer cancel()
	members := g.enter(name)
	leaveMembers, err := members.Take(ctx, sender)
	if err != nil {
		g.leave(name)
		return nil, err
	}
	leaveGroups, err := g.turns.Take(ctx, Sender{name})
	if err != nil {
		leaveMembers()
		g.leave(name)
		return nil, err
	}
	return func() {
		leaveGroups()
		leaveMembers()
		g.leave(name)
	}, nil
}

func (g *Groups) enter(name string) *Turns {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.groups[name]
	if m == nil {
		m = &group{turns: New(g.share, g.turns.room, g.patience)}
		g.groups[name] = m
	}
	m.members++
	return m.turns
}

func (g *Groups) leave(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.groups[name]
	if m.members--; m.members == 0 {
		delete(g.groups, name)
	}
}
