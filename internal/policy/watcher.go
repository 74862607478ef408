package policy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// watcher is the part of Watch and Follow that does not know about files.
type watcher struct {
	engine   *Engine
	poll     time.Duration
	changed  <-chan struct{} // nil if nobody gives notice
	load     func() (Modules, error)
	onResult func(Snapshot, error)
	loading  chan loaded // of a load that has not returned; nil if there is none
	last     string      // what the attempt before was about; empty before the first
	again    bool        // the attempt before ran out of time, which says nothing about its content
}

// loaded is what a load has returned.
type loaded struct {
	m   Modules
	err error
}

// Follow activates what load returns, at once and again at each poll when it returns something else, until ctx is done: as Watch does for a directory,
// with the same answers to what cannot be loaded. load is called by one goroutine at a time.
func (e *Engine) Follow(ctx context.Context, poll time.Duration, load func() (Modules, error), onResult func(Snapshot, error)) {
	w := &watcher{engine: e, poll: poll, load: load, onResult: onResult}
	w.run(ctx)
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

// read returns what load does. A file can keep its reader for ever, as one of a network file system that is away: that is an error after
// Options.WatchRead, and nothing waits for it then but a goroutine.
func (w *watcher) read(ctx context.Context) (Modules, error) {
	late := time.NewTimer(w.engine.options.WatchRead)
	defer late.Stop()
	for {
		isOld := w.loading != nil // it may return what was there long ago
		if !isOld {
			w.loading = make(chan loaded, 1)
			go func(done chan<- loaded) {
				m, err := w.load()
				done <- loaded{m, err}
			}(w.loading)
		}
		select {
		case l := <-w.loading:
			if w.loading = nil; !isOld {
				return l.m, l.err
			}
		case <-late.C:
			return Modules{}, fmt.Errorf("read policies: not done after %v: the disk or a network file system does not answer", w.engine.options.WatchRead)
		case <-ctx.Done():
			return Modules{}, ctx.Err()
		}
	}
}

// attempt activates what load returns, unless the attempt before was about the same. An error is told or, if nobody listens, logged.
func (w *watcher) attempt(ctx context.Context) {
	m, err := w.read(ctx)
	if ctx.Err() != nil {
		return
	}
	about := ""
	if err == nil {
		data, dataErr := newDocument(m.Data, w.engine.options.Limits.DataBytes)
		err = dataErr
		about = m.revision(data)
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
