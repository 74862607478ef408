package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxAbandoned bounds the activations of one engine that are under way, abandoned ones among them, without those of
	// modules that were activated before. An abandoned one ends when the compiler has done its present stage.
	maxAbandoned = 2
	// maxOverdue bounds the sets of modules that are remembered for one reason; the oldest is forgotten for a new one.
	maxOverdue = 64
	// overdueFor is how long modules that ran out of time are not tried again. A busy machine may have been the reason.
	overdueFor = 10 * time.Minute
)

var (
	errOverdue   = errors.New("these modules ran out of time less than 10 minutes ago, and are not tried again until then")
	errAbandoned = errors.New("the modules ran out of time, in the compiler or outside of it")
	errCrowded   = errors.New("earlier modules are still being compiled, although they ran out of time; try again later")
)

// built is what came of one activation.
type built struct {
	snapshot *snapshot
	tested   tested
	err      error
}

// buildInTime is build on a goroutine of its own, which is left to itself when the time is over. Its place is free again
// only when it ends; what a caller holds is free at once.
func (e *Engine) buildInTime(ctx context.Context, m Modules) built {
	hash := m.hash()
	if e.overdue.has(hash, time.Now().Add(-overdueFor)) {
		return built{err: fmt.Errorf("%w: %w", errOverdue, context.DeadlineExceeded)}
	}
	// What was activated before can be compiled, so it needs no place: other data, and a return to the modules of before, are
	// taken whatever else is under way.
	leave := func() {}
	if known := e.known.has(hash, time.Time{}); !known {
		select {
		case e.builds <- struct{}{}:
			leave = func() { <-e.builds }
		default:
			return built{err: fmt.Errorf("%w: %w", errCrowded, context.DeadlineExceeded)}
		}
	}
	w := e.options.work()
	ctx, cancel := within(ctx, 2*e.options.TestTimeout, w.used) //nolint:mnd // to compile, then to test
	defer cancel()
	done, before := make(chan built, 1), e.tested
	go func() {
		var b built
		w.run(func() { b = e.build(ctx, m, before) })
		leave() // before the caller can ask for the next
		done <- b
	}()
	var b built
	abandoned := false
	select {
	case b = <-done:
	case <-ctx.Done():
		abandoned = true
		b.err = fmt.Errorf("%w: %w", errAbandoned, context.Cause(ctx))
	}
	if (abandoned || e.options.Trial) && errors.Is(context.Cause(ctx), context.DeadlineExceeded) || e.options.Trial && ranOutOfTime(b.err) {
		e.overdue.add(hash, time.Now())
	}
	switch {
	case abandoned:
		e.known.forget(hash)
	case b.err == nil:
		e.known.add(hash, time.Now())
	}
	return b
}

// hash is that of the files, which alone decide how long compiling takes.
func (m Modules) hash() [sha256.Size]byte {
	h := sha256.New()
	m.writeFiles(h)
	return [sha256.Size]byte(h.Sum(nil))
}

// hashes remembers sets of modules, and when they were added.
type hashes struct {
	mu   sync.Mutex
	when map[[sha256.Size]byte]time.Time
}

// has reports whether the hash was added after a time.
func (o *hashes) has(hash [sha256.Size]byte, after time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	when, ok := o.when[hash]
	return ok && when.After(after)
}

func (o *hashes) forget(hash [sha256.Size]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.when, hash)
}

func (o *hashes) add(hash [sha256.Size]byte, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.when == nil {
		o.when = map[[sha256.Size]byte]time.Time{}
	}
	oldest, at := hash, now
	for other, when := range o.when {
		if when.Before(at) {
			oldest, at = other, when
		}
	}
	if _, ok := o.when[hash]; !ok && len(o.when) >= maxOverdue {
		delete(o.when, oldest)
	}
	o.when[hash] = now
}
