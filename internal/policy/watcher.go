package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/patience"
)

// watcher is the part of Watch and Follow that does not know about files.
type watcher struct {
	engine   *Engine
	poll     time.Duration
	changed  <-chan struct{} // nil without notifications
	reader   *patience.Reader[Modules]
	onResult func(Snapshot, error)
	last     string // what the attempt before was about; empty before the first
	again    bool   // the attempt before ran out of time, which says nothing about its content
}

// newWatcher returns a watcher that waits for load no longer than Options.WatchRead: a file can keep its reader for ever.
func (e *Engine) newWatcher(poll time.Duration, load func() (Modules, error), onResult func(Snapshot, error)) *watcher {
	return &watcher{engine: e, poll: poll, reader: patience.New(e.options.WatchRead, load), onResult: onResult}
}

// Follow activates what load returns, at once and again at each poll when it returns something else, until ctx is done: as Watch does for a directory,
// with the same answers to what cannot be loaded. load is called by one goroutine at a time.
func (e *Engine) Follow(ctx context.Context, poll time.Duration, load func() (Modules, error), onResult func(Snapshot, error)) {
	e.newWatcher(poll, load, onResult).run(ctx)
}

// run attempts once, then after each change that was followed by quiet, and at each poll.
func (w *watcher) run(ctx context.Context) {
	poll := time.NewTicker(w.poll)
	defer poll.Stop()
	w.attempt(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-poll.C:
		case <-w.changed:
			if !w.settle(ctx) {
				return
			}
		}
		w.attempt(ctx)
	}
}

// settleRounds bounds how long a directory that never becomes quiet can put off its own activation.
const settleRounds = 20

// settle waits until no change came for a while. It returns false when ctx is done.
func (w *watcher) settle(ctx context.Context) bool {
	for range settleRounds {
		quiet := time.NewTimer(w.engine.options.WatchSettle)
		select {
		case <-ctx.Done():
			quiet.Stop()
			return false
		case <-w.changed:
			quiet.Stop()
		case <-quiet.C:
			return true
		}
	}
	return true
}

// read returns what load does, and what it is about.
func (w *watcher) read(ctx context.Context) (m Modules, about string, err error) {
	if m, err = w.reader.Read(ctx); errors.Is(err, patience.ErrLate) {
		return m, "", fmt.Errorf("policies: %w", err)
	} else if err != nil {
		return m, "", err
	}
	data, err := newDocument(m.Data, w.engine.options.Limits.DataBytes)
	if err != nil {
		return m, "", err
	}
	return m, m.revision(data), nil
}

// attempt activates what load returns once it stays the same, unless the attempt before was about the same. An error goes to onResult or, without
// one, to the log.
func (w *watcher) attempt(ctx context.Context) {
	read := func() (Modules, string, error) { return w.read(ctx) }
	var m Modules
	var about string
	var err error
	if w.last == "" { // nothing decides yet
		m, about, err = read()
	} else {
		m, about, err = patience.Settled(ctx, w.engine.options.WatchSettle, w.last, read)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		about = err.Error()
	}
	if about == w.last && !w.again {
		return
	}
	var s Snapshot
	if err == nil {
		s, err = w.engine.Activate(ctx, m)
	}
	if ctx.Err() != nil {
		return // an activation that was cut off says nothing about the policies
	}
	w.last, w.again = about, ranOutOfTime(err)
	switch {
	case w.onResult != nil:
		w.onResult(s, err)
	case err != nil:
		w.engine.options.Log.Error("policies refused, the ones before go on deciding", zap.Error(err))
	}
}

func ranOutOfTime(err error) bool {
	own, ok := errors.AsType[*Error](err)
	return errors.Is(err, context.DeadlineExceeded) || (ok && own.Reason == ReasonTimeout)
}
