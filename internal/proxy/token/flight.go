package token

import "context"

// flight is a question that is being asked. Fields are read after done is closed.
type flight[T any] struct {
	done   chan struct{}
	answer answer[T]
	stale  bool
}

// confirmAlive passes an answer on if the process that it is about still runs. A stale answer needs to know.
func confirmAlive[T any](q question[T], f found[T]) (found[T], *Refusal) {
	switch {
	case q.alive == nil && f.stale:
		return found[T]{}, refuse(Unavailable, "the API server does not answer, and it is not known whether the caller still runs")
	case q.alive == nil:
		return f, nil
	}
	if err := q.alive(); err != nil {
		r := refuse(Ended, "the caller's process has ended")
		r.cause = err
		return found[T]{}, r
	}
	return f, nil
}

// fly asks, and remembers what was said. A caller that leaves does not end the question, since others wait for it.
func (m *memo[T]) fly(ctx context.Context, q question[T], f *flight[T]) {
	f.answer = answer[T]{refusal: refuse(Unavailable, "asking did not end")} // if ask panics
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.flights, q.key)
		close(f.done)
	}()
	value, refusal := m.ask(ctx, q)

	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	f.answer = answer[T]{value: value, refusal: refusal, checked: now, expires: q.expires}
	switch {
	case refusal == nil:
		m.denies.remove(q.key)
		m.allows.put(q.key, f.answer)
	case refusal.Reason != Unavailable && refusal.Reason != Busy:
		m.allows.remove(q.key)
		m.denies.put(q.key, f.answer)
	default: // no answer refused it
		last, ok := m.allows.get(q.key)
		if ok && now.Before(last.expires) && now.Sub(last.checked) < m.staleFor {
			last.retry = now.Add(m.denyFor)
			m.allows.put(q.key, last)
			f.answer, f.stale = last, true
		}
	}
}

func (m *memo[T]) ask(ctx context.Context, q question[T]) (T, *Refusal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.timeout)
	defer cancel()
	if m.bounded {
		if !m.begin(q.asker) {
			var none T
			return none, refuse(Busy, "too many questions about callers are open: try again")
		}
		defer m.end(q.asker)
	}
	return q.ask(ctx)
}

func (m *memo[T]) begin(by asker) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pods[by.pod] >= maxAskingPerPod || m.spaces[by.namespace] >= maxAsking-m.open {
		return false
	}
	m.open++
	m.pods[by.pod]++
	m.spaces[by.namespace]++
	return true
}

func (m *memo[T]) end(by asker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open--
	less(m.pods, by.pod)
	less(m.spaces, by.namespace)
}

func less(counts map[string]int, name string) {
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}
