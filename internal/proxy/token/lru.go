package token

import "container/list"

// lru keeps the entries that were used last, and forgets the others. It has no lock.
type lru[K comparable, V any] struct {
	limit int
	order *list.List // of pair[K, V], the one used last in front
	at    map[K]*list.Element
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{limit: limit, order: list.New(), at: map[K]*list.Element{}}
}

func (l *lru[K, V]) get(key K) (value V, ok bool) {
	e, ok := l.at[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(e)
	return l.pair(e).value, true
}

func (l *lru[K, V]) put(key K, value V) {
	if e, ok := l.at[key]; ok {
		e.Value = pair[K, V]{key, value}
		l.order.MoveToFront(e)
		return
	}
	if len(l.at) >= l.limit {
		l.remove(l.pair(l.order.Back()).key)
	}
	l.at[key] = l.order.PushFront(pair[K, V]{key, value})
}

func (l *lru[K, V]) remove(key K) {
	if e, ok := l.at[key]; ok {
		l.order.Remove(e)
		delete(l.at, key)
	}
}

func (*lru[K, V]) pair(e *list.Element) pair[K, V] {
	p, _ := e.Value.(pair[K, V]) // nothing else is put in
	return p
}
