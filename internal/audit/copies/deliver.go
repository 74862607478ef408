package copies

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

// Bounds of the pause before another try. The first spares a collector that is started again; the last is short beside the time that
// the queue lasts on a quiet node, and long enough for a cluster of nodes that all ask.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
	mostAsked  = 5 * time.Minute // that a destination may ask for
)

// run hands on what is queued until the queue is ended and empty, or ctx ends.
func (q *queue) run(ctx context.Context) {
	defer close(q.done)
	if c, ok := q.to.(io.Closer); ok {
		defer func() { _ = c.Close() }() // nothing is lost by it: what counts as sent has been answered
	}
	var gather time.Duration
	if g, ok := q.to.(interface{ Gather() time.Duration }); ok {
		gather = g.Gather()
	}
	for {
		if gather > 0 && !q.isFull() {
			if !q.await(ctx) {
				return
			}
			pause(ctx, q.ended, gather)
		}
		if batch := q.take(); len(batch) > 0 {
			q.deliver(ctx, batch)
			continue
		}
		if !q.await(ctx) {
			return
		}
	}
}

// await returns true when something is queued, and false when nothing follows.
func (q *queue) await(ctx context.Context) bool {
	for {
		q.mu.Lock()
		isEmpty, isEnded := len(q.items) == 0, q.isEnded
		q.mu.Unlock()
		switch {
		case !isEmpty:
			return true
		case isEnded:
			return false
		}
		select {
		case <-ctx.Done():
		case <-q.ended:
		case <-q.wake:
		}
	}
}

// pause waits until ctx is done or ended is closed, and says whether that is why it returns.
func pause(ctx context.Context, ended <-chan struct{}, d time.Duration) (isEnded bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-ended:
		return true
	case <-t.C:
	}
	return false
}

// deliver hands a batch on, again and again while the destination asks for it. A checkpoint is tried once: a newer one says more.
func (q *queue) deliver(ctx context.Context, batch []item) {
	records := make([]Record, 0, len(batch))
	for _, i := range batch {
		records = append(records, i.Record)
	}
	ended := q.ended
	for most := firstPause; ; most = min(2*most, lastPause) {
		if ctx.Err() != nil {
			q.settle(batch, len(batch), ctx.Err())
			return
		}
		err := q.to.Send(ctx, records)
		var again *AgainError
		var partial *PartialError
		switch {
		case err == nil:
			q.settle(batch, 0, nil)
			return
		case errors.As(err, &partial):
			q.settle(batch, min(max(partial.Failed, 0), len(batch)), err)
			return
		case !errors.As(err, &again), batch[0].answer != nil:
			q.settle(batch, len(batch), err)
			return
		}
		q.later(err)
		wait := max(most/2+rand.N(most/2), min(again.After, mostAsked)) // #nosec G404 -- keeps nodes from asking all at once

		if pause(ctx, ended, wait) { // one try at once: a stop may have less time than the pause
			ended = nil
		}
	}
}
