package evidence

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Sink is a place outside the log's directory, where an attacker who changes the log cannot change the copy.
type Sink interface {
	Name() string
	// Send hands a copy on. It may take its time, and is given up when ctx ends.
	Send(ctx context.Context, c Copy) error
}

// Copy is a checkpoint on its way to a sink.
type Copy struct {
	Head
	Raw []byte // the signed note
	// IsLast says that the log is being closed.
	IsLast bool
	// Prove returns the consistency proof from the log's first old records to the checkpoint.
	Prove func(ctx context.Context, old uint64) (tlog.TreeProof, error)
	// Cosigned tells the log that a witness cosigned the checkpoint, and will ask how the log grew from there.
	Cosigned func()
}

// SinkStats counts what became of checkpoints. Dropped ones were overtaken by newer ones before the sink took them, which say more.
type SinkStats struct {
	Name                  string
	Sent, Dropped, Failed uint64
}

// sendTimeout bounds one attempt to hand a copy on.
const sendTimeout = 30 * time.Second

// sinkWorker brings copies to one sink. Giving it one never waits: there is room for one, the newest.
type sinkWorker struct {
	sink                  Sink
	sent, dropped, failed atomic.Uint64
	onError               func(error)

	mu      sync.Mutex // guards the fields below
	newest  *Copy
	isEnded bool
	wake    chan struct{} // has room for one
	done    chan struct{}
}

func newSinkWorker(sink Sink, onError func(error)) *sinkWorker {
	return &sinkWorker{sink: sink, onError: onError, wake: make(chan struct{}, 1), done: make(chan struct{})}
}

func (c *sinkWorker) give(copied Copy) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest != nil || c.isEnded {
		c.dropped.Add(1)
	}
	c.newest = &copied
	periodic.Signal(c.wake)
}

// end lets run return once it has handed on what it has.
func (c *sinkWorker) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isEnded = true
	periodic.Signal(c.wake)
}

func (c *sinkWorker) take() (next *Copy, isEnded bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, c.newest = c.newest, nil
	return next, c.isEnded
}

// run hands copies on until it is ended or ctx is.
func (c *sinkWorker) run(ctx context.Context) {
	defer close(c.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		for {
			next, isEnded := c.take()
			if next != nil {
				c.send(ctx, *next)
				continue
			}
			if isEnded {
				return
			}
			break
		}
	}
}

func (c *sinkWorker) send(ctx context.Context, next Copy) {
	ctx, stop := context.WithTimeout(ctx, sendTimeout)
	defer stop()
	if err := c.sink.Send(ctx, next); err != nil {
		c.failed.Add(1)
		c.onError(&SinkError{c.sink.Name(), err})
		return
	}
	c.sent.Add(1)
}

func (c *sinkWorker) stats() SinkStats {
	return SinkStats{c.sink.Name(), c.sent.Load(), c.dropped.Load(), c.failed.Load()}
}

// SinkError is why a copy was not taken.
type SinkError struct {
	Sink string
	Err  error
}

func (e *SinkError) Error() string { return "checkpoint to " + e.Sink + ": " + e.Err.Error() }

// Unwrap returns the sink's error.
func (e *SinkError) Unwrap() error { return e.Err }
