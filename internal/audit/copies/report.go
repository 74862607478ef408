package copies

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// reportEvery bounds how often one destination is reported: one that is away fails for each of thousands of records.
const reportEvery = time.Minute

// DestinationError is what became of copies to a destination since the last one.
type DestinationError struct {
	Destination string
	Dropped     uint64 // records for which the queue had no room
	Missing     uint64 // records dropped, told of before or not, before those that the destination gets again; 0 if it gets none yet
	Failed      uint64 // records that the destination did not take
	Err         error  // why; with Failed 0 the destination is asked again, or took them with a warning
}

func (e *DestinationError) Error() string {
	var parts []string
	if e.Dropped > 0 {
		parts = append(parts, fmt.Sprintf("%d dropped, the queue is full", e.Dropped))
	}
	if e.Missing > 0 {
		parts = append(parts, fmt.Sprintf("there is room again after %d were dropped", e.Missing))
	}
	if e.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", e.Failed))
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return "copies of audit records to " + e.Destination + ": " + strings.Join(parts, "; ")
}

// Unwrap returns why records failed.
func (e *DestinationError) Unwrap() error { return e.Err }

// troubled returns what was not reported yet, nil if there is nothing.
func (q *queue) troubled() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.news.Dropped == 0 && q.news.Missing == 0 && q.news.Err == nil {
		return nil
	}
	err := q.news
	q.news = DestinationError{Destination: err.Destination}
	return &err
}

// report reports losses in a goroutine of its own until ctx is done: neither the writer of the log nor a sender may wait for a logger.
func (c *Copies) report(ctx context.Context, onLoss func(error)) {
	defer close(c.reported)
	told := make([]time.Time, len(c.queues))
	t := time.NewTimer(0)
	defer t.Stop()
	for isEnded := false; !isEnded; {
		select {
		case <-c.wake:
		case <-t.C:
		case <-ctx.Done():
			isEnded = true
		}
		next := reportEvery
		for i, q := range c.queues {
			if rest := reportEvery - time.Since(told[i]); !told[i].IsZero() && rest > 0 && !isEnded {
				next = min(next, rest)
				continue
			}
			if err := q.troubled(); err != nil {
				told[i] = time.Now()
				onLoss(err)
			}
		}
		t.Reset(next)
	}
}
