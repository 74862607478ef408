package proxy

import (
	"context"
	"sync"
)

// lifetime is the context of a connection, and the parent of the contexts of its requests. gRPC makes a request's context before it asks
// the tap, and does not cancel it if the tap refuses: a request with a far deadline would be held by its timer until then, long
// after its connection is gone. So a connection's context can cancel the context that was derived from it last. It is never
// done itself: gRPC ends what it has let in.
type lifetime struct {
	context.Context // of the values
	never           chan struct{}

	mu   sync.Mutex // guards the fields below
	last *func()    // cancels the context that was derived last; nil if that is done
	err  error      // for the context that is being cancelled
}

func newLifetime(ctx context.Context) *lifetime {
	return &lifetime{Context: ctx, never: make(chan struct{})}
}

// Done implements context.Context. A context without a channel would not be told of those that are derived from it.
func (l *lifetime) Done() <-chan struct{} { return l.never }

// Err implements context.Context.
func (l *lifetime) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// AfterFunc is how package context asks to be told of the end of a context that is not its own; see [context.AfterFunc].
func (l *lifetime) AfterFunc(cancel func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = &cancel
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.last == &cancel {
			l.last = nil
		}
		return true // no cancellation but cancelLast's was ever begun
	}
}

// cancelLast cancels the context that was derived last. It must not be called beside a derivation.
func (l *lifetime) cancelLast() {
	l.mu.Lock()
	cancel := l.last
	l.last, l.err = nil, context.Canceled
	l.mu.Unlock()
	if cancel != nil {
		(*cancel)()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = nil
}
