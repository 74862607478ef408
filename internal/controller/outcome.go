package controller

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// ObjectKey names one policy object. The UID tells it from a namesake that was deleted: generations begin anew.
type ObjectKey struct {
	Kind, Name string
	UID        types.UID
}

// Outcome is what a replica knows of its newest attempt to take over the cluster's policies. Nothing in it changes after
// it is published; readers must not write to the maps.
type Outcome struct {
	// Revision is what decides now, "" if nothing does.
	Revision string
	// Attempted is a short hash of everything that went into the newest attempt. Replicas with the same inputs have the same.
	Attempted string
	// Err is why the newest attempt is not active, or nil: errors of Options.Base and Options.Assemble, or of the engine.
	Err error
	// Generations are those of the objects that the newest attempt was about.
	Generations map[ObjectKey]int64
	// ActiveAttempt is what Attempted was when what decides now was activated.
	ActiveAttempt string
	// Active are those of the objects that went into what decides now.
	Active map[ObjectKey]int64
	// At is when the attempt ended.
	At time.Time
}

// outcomes hands the newest outcome to those who read it, and wakes those who wait for it.
type outcomes struct {
	latest    atomic.Pointer[Outcome]
	mu        sync.Mutex // guards listeners
	listeners []chan struct{}
}

// Latest returns the newest outcome, and whether there was an attempt yet.
func (o *outcomes) Latest() (Outcome, bool) {
	if p := o.latest.Load(); p != nil {
		return *p, true
	}
	return Outcome{}, false
}

// Subscribe returns a channel that receives after each new outcome. One waiting signal stands for any number.
// The subscription lasts as long as the process.
func (o *outcomes) Subscribe() <-chan struct{} {
	c := make(chan struct{}, 1)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listeners = append(o.listeners, c)
	return c
}

func (o *outcomes) publish(next Outcome) {
	o.latest.Store(&next)
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.listeners {
		periodic.Signal(c)
	}
}
