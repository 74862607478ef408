package policy

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
)

// watcher is the part of Watch that does not know about files.
type watcher struct {
	engine   *Engine
	changed  <-chan struct{}
	load     func() (Modules, error)
	onResult func(Snapshot, error)
	last     string // what the attempt before was about; empty before the first
	again    bool   // the attempt before ran out of time, which says nothing about its content
}

// run attempts once, then after each change that was followed by quiet, and at each poll.
func (w *watcher) run(ctx context.Context) {
	poll := time.NewTicker(w.engine.options.WatchPoll)
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

// attempt activates what load returns, unless the attempt before was about the same. An error is told or, if nobody listens, logged.
func (w *watcher) attempt(ctx context.Context) {
	m, err := w.load()
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
