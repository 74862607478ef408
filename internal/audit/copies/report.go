package copies

import (
	"fmt"
	"strings"
	"sync"
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

// failures are those that were not reported yet.
type failures struct {
	dropped, failed uint64
	gap             uint64 // records dropped since the last for which there was room, told of or not
	missing         uint64 // of gaps that have ended
	err             error
}

func (t *failures) drop() { t.dropped, t.gap = t.dropped+1, t.gap+1 }

// resume notes that there was room for a record, and says whether there was none before.
func (t *failures) resume() bool {
	gap := t.gap
	t.missing, t.gap = t.missing+gap, 0
	return gap > 0
}

func (t *failures) fail(n int, err error) { t.failed, t.err = t.failed+uint64(n), err } // #nosec G115 -- not negative

// troubled returns what was not reported yet, nil if there is nothing.
func (q *queue) troubled() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &q.failures
	if t.dropped == 0 && t.missing == 0 && t.err == nil {
		return nil
	}
	err := &DestinationError{Destination: q.count.Name, Dropped: t.dropped, Missing: t.missing, Failed: t.failed, Err: t.err}
	*t = failures{gap: t.gap}
	return err
}

// reporter reports failures in a goroutine of its own: neither the writer of the log nor a sender may wait for a logger.
type reporter struct {
	onLoss func(error)
	wake   chan struct{} // has room for one
	ended  chan struct{}
	once   sync.Once
	done   chan struct{}
}

func newReporter(onLoss func(error)) *reporter {
	return &reporter{onLoss: onLoss, wake: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{})}
}

func (r *reporter) end() { r.once.Do(func() { close(r.ended) }) }

func (r *reporter) run(queues []*queue) {
	defer close(r.done)
	told := make([]time.Time, len(queues))
	t := time.NewTimer(0)
	defer t.Stop()
	for isEnded := false; !isEnded; {
		select {
		case <-r.wake:
		case <-t.C:
		case <-r.ended:
			isEnded = true
		}
		next := reportEvery
		for i, q := range queues {
			if rest := reportEvery - time.Since(told[i]); !told[i].IsZero() && rest > 0 && !isEnded {
				next = min(next, rest)
				continue
			}
			if err := q.troubled(); err != nil {
				told[i] = time.Now()
				r.onLoss(err)
			}
		}
		t.Reset(next)
	}
}
