package witness

import (
	"sync"
	"time"
)

// bucket lets a burst pass and then a number each second. https://en.wikipedia.org/wiki/Token_bucket
type bucket struct {
	burst, perSecond float64
	now              func() time.Time

	mu   sync.Mutex // guards the fields below
	left float64
	at   time.Time
}

func newBucket(burst, perSecond float64, now func() time.Time) *bucket {
	return &bucket{burst: burst, perSecond: perSecond, now: now, left: burst, at: now()}
}

// take returns false if there were too many.
func (b *bucket) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.left, b.at = min(b.burst, b.left+max(0, now.Sub(b.at).Seconds())*b.perSecond), now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}

// buckets are one for each name.
type buckets struct {
	make func() *bucket
	most int

	mu  sync.Mutex // guards the fields below
	all map[string]*bucket
}

// take takes from the bucket of a name. With too many names all begin anew, which lets each have another burst.
func (b *buckets) take(name string) bool {
	b.mu.Lock()
	one, ok := b.all[name]
	if !ok {
		if len(b.all) >= b.most || b.all == nil {
			b.all = map[string]*bucket{}
		}
		one = b.make()
		b.all[name] = one
	}
	b.mu.Unlock()
	return one.take()
}
