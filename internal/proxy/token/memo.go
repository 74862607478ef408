package token

import (
	"context"
	"sync"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

const (
	// maxAllows and maxDenies bound what is remembered; they are apart, so that guessing pushes out no answer that allows.
	maxAllows, maxDenies = 4096, 4096
	// maxAsking bounds the questions that are open at one time, and maxAskingPerPod those about one pod, whatever processes it starts. Those
	// about all pods of one namespace are never more than what they leave free.
	maxAsking, maxAskingPerPod = 32, 4
)

// key is what an answer was given about. What is not in it must be the same for all callers.
type key struct {
	token   [32]byte // SHA-256 of the token, or of the question about its identity
	facts   factsKey
	basis   [32]byte // SHA-256 of the keys that signatures were compared with
	subject string   // what access was asked to
}

// factsKey are the facts that an answer depends on.
type factsKey struct {
	pid     uint32
	started int64
	pod     caller.Pod
}

func (f Facts) key() factsKey {
	return factsKey{f.Process.PID, f.Process.Start.UnixNano(), f.Pod}
}

// asker is the party that a question counts for.
type asker struct{ pod, namespace string }

// asker is the pod of a caller, and one for all strangers.
func (f Facts) asker() asker {
	if f.Stranger {
		return asker{"strangers", "strangers"}
	}
	return asker{"uid " + f.Pod.UID, "namespace " + f.Pod.Namespace}
}

// answer is what was found out, and when.
type answer[T any] struct {
	value   T
	refusal *Refusal
	checked time.Time
	expires time.Time // the token's
	retry   time.Time // do not ask again before
}

// memo remembers answers, and asks once when many want to know the same.
type memo[T any] struct {
	allowFor, denyFor, staleFor, timeout time.Duration
	bounded                              bool // a question is a load on the API server, so few are open at a time
	now                                  func() time.Time

	mu      sync.Mutex // guards the fields below
	allows  *lru[key, answer[T]]
	denies  *lru[key, answer[T]]
	flights map[key]*flight[T]
	open    int            // questions
	pods    map[string]int // of those, by what they count for: see asker
	spaces  map[string]int
}

func newMemo[T any](c Config, bounded bool) *memo[T] {
	return &memo[T]{
		allowFor: c.AllowFor, denyFor: c.DenyFor, staleFor: c.StaleFor, timeout: c.Timeout, bounded: bounded, now: time.Now,
		allows: newLRU[key, answer[T]](maxAllows), denies: newLRU[key, answer[T]](maxDenies),
		flights: map[key]*flight[T]{}, pods: map[string]int{}, spaces: map[string]int{},
	}
}

// question is something to find out for a caller.
type question[T any] struct {
	key     key
	asker   asker
	expires time.Time // of the token; no answer outlives it
	alive   func() error
	ask     func(context.Context) (T, *Refusal)
}

// found is an answer for one call.
type found[T any] struct {
	value         T
	checked       time.Time
	cached, stale bool
}

// fresh returns a remembered answer that allows and is still valid.
func (m *memo[T]) fresh(k key) (answer[T], bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, ok := m.allows.get(k)
	now := m.now()
	return a, ok && now.Before(a.expires) && now.Sub(a.checked) < m.allowFor
}

// remembers says whether there is an answer that allows, fresh or not.
func (m *memo[T]) remembers(k key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.allows.get(k)
	return ok
}

// find returns an answer that holds now, asking if there is none.
func (m *memo[T]) find(ctx context.Context, q question[T]) (found[T], *Refusal) {
	m.mu.Lock()
	now := m.now()
	if a, ok := m.allows.get(q.key); ok {
		if !now.Before(a.expires) {
			m.allows.remove(q.key)
		} else if now.Sub(a.checked) < m.allowFor {
			m.mu.Unlock()
			return found[T]{value: a.value, checked: a.checked, cached: true}, nil
		} else if now.Before(a.retry) && now.Sub(a.checked) < m.staleFor {
			m.mu.Unlock()
			return confirmAlive(q, found[T]{value: a.value, checked: a.checked, cached: true, stale: true})
		}
	}
	if a, ok := m.denies.get(q.key); ok {
		if now.Sub(a.checked) < m.denyFor {
			m.mu.Unlock()
			return found[T]{checked: a.checked, cached: true}, a.refusal
		}
		m.denies.remove(q.key)
	}
	f, flying := m.flights[q.key]
	if !flying {
		f = &flight[T]{done: make(chan struct{})}
		m.flights[q.key] = f
		m.mu.Unlock()
		m.fly(ctx, q, f)
	} else {
		m.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return found[T]{}, unavailable("the call was over before the API server answered", ctx.Err())
		}
	}
	if f.answer.refusal != nil {
		return found[T]{checked: f.answer.checked}, f.answer.refusal
	}
	return confirmAlive(q, found[T]{value: f.answer.value, checked: f.answer.checked, stale: f.stale})
}
