package acl

import (
	"maps"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Limiter counts what principals use up. It may be used by many goroutines.
//
// It remembers a bounded number of principals. A principal that has not called for as long as its bound takes to fill is
// forgotten without loss. If there are still too many, new ones share one bound for each rule: many principals do not get
// more than few, and those that were there before are not disturbed.
type Limiter struct {
	most int

	mu          sync.Mutex // guards the fields below
	buckets     map[bucketKey]*bucket
	shared      map[string]*bucket // by rule
	swept       time.Time
	connections map[connectionKey]int
}

type bucketKey struct {
	who  caller.Principal
	rule string
}

type connectionKey struct {
	who  caller.Principal
	pipe string
}

// bucket is a Bucket with the rate that it was used by last.
type bucket struct {
	Bucket
	rate Rate
}

// isFull says that it is as good as new.
func (b *bucket) isFull(now time.Time) bool { return b.Left(b.rate, now) >= b.rate.Most }

// DefaultPrincipals is how many principals of a rule are told apart: a node has far fewer containers that use pipes.
const DefaultPrincipals = 4096

// sweepInterval bounds how often all principals are looked at.
const sweepInterval = time.Second

// NewLimiter returns a Limiter that remembers most principals; 0 stands for DefaultPrincipals.
func NewLimiter(most int) *Limiter {
	if most <= 0 {
		most = DefaultPrincipals
	}
	return &Limiter{most: most, buckets: map[bucketKey]*bucket{}, shared: map[string]*bucket{}, connections: map[connectionKey]int{}}
}

// Call says whether a call of who, that rule has allowed, is within the limits, and counts it if it is. The rule is a Decision's
// CountedAs or Rule; an empty one stands for all calls that no rule has allowed.
func (l *Limiter) Call(who caller.Principal, rule string, limits access.Limits) bool {
	if limits.CallsPerSecond <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	return l.bucket(bucketKey{who, rule}, now).take(limits, now)
}

// bucket finds or makes a bucket.
func (l *Limiter) bucket(key bucketKey, now time.Time) *bucket {
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= l.most && now.Sub(l.swept) >= sweepInterval {
		l.sweep(now)
	}
	b := &bucket{}
	if len(l.buckets) < l.most {
		l.buckets[key] = b
		return b
	}
	if found := l.shared[key.rule]; found != nil {
		return found
	}
	l.shared[key.rule] = b
	return b
}

func (l *Limiter) sweep(now time.Time) {
	l.swept = now
	maps.DeleteFunc(l.buckets, func(_ bucketKey, b *bucket) bool { return b.isFull(now) })
	maps.DeleteFunc(l.shared, func(_ string, b *bucket) bool { return b.isFull(now) })
}

func (b *bucket) take(limits access.Limits, now time.Time) bool {
	b.rate = Rate{Most: float64(limits.Burst), PerSecond: float64(limits.CallsPerSecond)}
	if limits.Burst == 0 {
		b.rate.Most = b.rate.PerSecond
	}
	if b.Left(b.rate, now) < 1 {
		return false
	}
	b.Take(1)
	return true
}

// Connect counts a connection of who to a pipe, unless there are most of them already; 0 is no bound. The connection
// counts until release is called, which may be done more than once.
func (l *Limiter) Connect(who caller.Principal, pipe string, most int) (release func(), ok bool) {
	key := connectionKey{who, pipe}
	l.mu.Lock()
	defer l.mu.Unlock()
	if most > 0 && l.connections[key] >= most {
		return nil, false
	}
	l.connections[key]++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.connections[key]--; l.connections[key] == 0 {
			delete(l.connections, key)
		}
	}), true
}
