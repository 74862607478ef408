package nodes

import (
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// heartbeats remember when each node was last heard of. What a node says of the time is its own clock's; that its object has
// changed is seen by ours.
type heartbeats struct {
	now func() time.Time

	mu   sync.Mutex // guards seen
	seen map[string]seen
}

type seen struct {
	version string // of the object
	first   bool   // it has not changed since it was seen first
	at      time.Time
}

func newHeartbeats(now func() time.Time) *heartbeats {
	return &heartbeats{now: now, seen: map[string]seen{}}
}

// reset forgets everything: what came between two terms of the leader was not heard.
func (e *heartbeats) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.seen)
}

// hear takes note of an object that is new, or that may have changed.
func (e *heartbeats) hear(n *v1alpha1.GuardedNode) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was, ok := e.seen[n.Name]
	if !ok || was.version != n.ResourceVersion {
		e.seen[n.Name] = seen{n.ResourceVersion, !ok, e.now()}
	}
}

func (e *heartbeats) forget(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.seen, name)
}

// last is when a node last reported, which is never in the future. Of an object that has not changed before our eyes, the report's own time
// is all that is known; one in the future says nothing, and the object is heard of when it is seen first.
func (e *heartbeats) last(n *v1alpha1.GuardedNode) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, ok := e.seen[n.Name]
	reported := n.ReportedAt.Time
	switch {
	case !ok:
		if now := e.now(); reported.After(now) {
			return now
		}
		return reported
	case s.first && !reported.After(s.at):
		return reported
	}
	return s.at
}
