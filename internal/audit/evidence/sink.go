package evidence

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/tlog"
)

// Sink is a destination for checkpoints out of reach of an attacker who can change the log.
type Sink interface {
	Name() string
	// Send delivers a copy. It may be slow, and is cancelled with ctx.
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

// SinkStats counts the checkpoints given to a sink. Dropped ones were superseded by newer ones before the sink took them.
type SinkStats struct {
	Name                  string
	Sent, Dropped, Failed uint64
}

// sendTimeout bounds one attempt to hand a copy on.
const sendTimeout = 30 * time.Second

// sinkWorker sends copies to one sink. Giving it one never waits: there is room for one, the newest.
type sinkWorker struct {
	sink                  Sink
	sent, dropped, failed atomic.Uint64
	onError               func(error)
	newest                chan Copy     // has room for one; closed once the last was given
	done                  chan struct{} // closed when run has returned
}

func newSinkWorker(sink Sink, onError func(error)) *sinkWorker {
	return &sinkWorker{sink: sink, onError: onError, newest: make(chan Copy, 1), done: make(chan struct{})}
}

// give puts a copy in the place of one that the sink has not taken yet. It has one caller at a time.
func (c *sinkWorker) give(copied Copy) {
	select {
	case <-c.newest:
		c.dropped.Add(1)
	default:
	}
	c.newest <- copied
}

// run sends copies until newest is closed and empty, or ctx is done.
func (c *sinkWorker) run(ctx context.Context) {
	defer close(c.done)
	for {
		select {
		case <-ctx.Done():
			return
		case next, isGiven := <-c.newest:
			if !isGiven {
				return
			}
			c.send(ctx, next)
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

// SinkError is the reason why a sink did not take a copy.
type SinkError struct {
	Sink string
	Err  error
}

func (e *SinkError) Error() string { return "checkpoint to " + e.Sink + ": " + e.Err.Error() }

// Unwrap returns the sink's error.
func (e *SinkError) Unwrap() error { return e.Err }
