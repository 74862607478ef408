package copies

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// ErrClosed means that nothing is taken any more.
var ErrClosed = errors.New("copies of the audit log are closed")

// overhead is about what a queued record costs beside its bytes. Without it, short ones could take much more than the bound.
const overhead = 64

// Bounds of one batch. Collectors refuse messages over 4 MiB; one of these with all its attributes has less than half of that.
const (
	mostRecords = 512
	mostBytes   = 512 << 10
)

// item is a record, or a checkpoint whose sender waits for the answer.
type item struct {
	Record
	answer chan error // of a checkpoint; has room for one
}

// queue holds what one destination has not taken yet.
type queue struct {
	to    Destination
	limit int
	wants func(line []byte) bool // nil if it wants all
	told  chan<- struct{}        // wakes the reports
	wake  chan struct{}          // has room for one
	ended chan struct{}          // closed by end
	done  chan struct{}          // closed when run has returned

	mu      sync.Mutex // guards the fields below
	items   []item
	held    int // bytes, with those of the batch under way
	count   Stats
	isEnded bool
	news    DestinationError // what was not reported yet
	gap     uint64           // records dropped since the last one for which there was room
}

func newQueue(p Destination, limit int, told chan<- struct{}) *queue {
	q := &queue{to: p, limit: limit, told: told, wake: make(chan struct{}, 1), ended: make(chan struct{}), done: make(chan struct{})}
	q.count.Name, q.news.Destination = p.Name(), p.Name()
	if c, ok := p.(interface{ Wants(line []byte) bool }); ok {
		q.wants = c.Wants
	}
	return q
}

func cost(line []byte) int { return len(line) + overhead }

// give queues a line if there is room. own is a copy of it that outlives the call, nil if there is none yet; it returns what there is now.
func (q *queue) give(line, own []byte) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isEnded || q.held+cost(line) > q.limit {
		q.count.Dropped++
		q.news.Dropped++
		q.gap++
		periodic.Signal(q.told)
		return own
	}
	if own == nil {
		own = bytes.Clone(line)
	}
	if q.gap > 0 {
		q.news.Missing, q.gap = q.news.Missing+q.gap, 0
		periodic.Signal(q.told)
	}
	q.held += cost(own)
	q.count.Queued++
	q.items = append(q.items, item{Record: Record{Line: own}})
	periodic.Signal(q.wake)
	return own
}

// checkpoint queues a checkpoint behind the records before it, and waits until the destination has taken it. There is always room for
// one: the worker of its sink brings no other meanwhile.
func (q *queue) checkpoint(ctx context.Context, raw []byte) error {
	answer := make(chan error, 1)
	q.mu.Lock()
	if q.isEnded {
		q.mu.Unlock()
		return ErrClosed
	}
	q.items = append(q.items, item{Record: Record{Checkpoint: bytes.Clone(raw)}, answer: answer})
	periodic.Signal(q.wake)
	q.mu.Unlock()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.items = slices.DeleteFunc(q.items, func(i item) bool { return i.answer == answer })
	return fmt.Errorf("wait for the destination to take it: %w", ctx.Err())
}

// end refuses all that comes, and lets run return once nothing is left.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isEnded {
		q.isEnded = true
		close(q.ended)
	}
}

// take returns the next batch: one checkpoint, or the records before the next one.
func (q *queue) take() []item {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, bytes := 0, 0
	for n < len(q.items) && n < mostRecords && bytes < mostBytes {
		if q.items[n].answer != nil {
			if n == 0 {
				n = 1
			}
			break
		}
		bytes += len(q.items[n].Line)
		n++
	}
	batch := slices.Clone(q.items[:n])
	clear(q.items[:n]) // the array behind it goes on holding those
	q.items = q.items[n:]
	return batch
}

// isFull says that what is queued fills a batch.
func (q *queue) isFull() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items) >= mostRecords || q.held >= mostBytes
}

// settle counts a batch that is under way no more, of which failed records were not taken.
func (q *queue) settle(batch []item, failed int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, i := range batch {
		if i.answer != nil { // alone in its batch, and the worker of its sink tells of errors
			if failed == 0 {
				err = nil
			}
			i.answer <- err
			return
		}
		q.held -= cost(i.Line)
	}
	q.count.Queued -= uint64(len(batch))
	q.count.Failed += uint64(failed)            // #nosec G115 -- from 0 to the length of the batch
	q.count.Sent += uint64(len(batch) - failed) // #nosec G115 -- likewise
	if err != nil {
		q.fail(failed, err)
	}
}

// later keeps why the destination takes nothing now, for the reports.
func (q *queue) later(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.fail(0, err)
}

// fail keeps how many records were not taken and why, for the reports.
func (q *queue) fail(n int, err error) {
	q.news.Failed, q.news.Err = q.news.Failed+uint64(n), err // #nosec G115 -- not negative
	periodic.Signal(q.told)
}

func (q *queue) stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count
}
