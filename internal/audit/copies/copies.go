package copies

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// defaultQueue is some thousand usual records, or five hundred of the longest: enough for a collector that is started again on a
// busy node, and little beside the rest of the process even with three destinations.
const defaultQueue = 4 << 20

// Options say where copies go.
type Options struct {
	Destinations []Destination
	// Queue bounds the bytes held for each destination, those under way included; 4 MiB if 0. What comes when they are used up is dropped: what
	// was first stays, which shows how something began, and one gap is easier to reason about than many.
	Queue int
	// OnLoss is told what is lost and why, as a *DestinationError, at most once a minute for each destination. It may wait, and
	// may be nil.
	OnLoss func(error)
	// Now is the clock, time.Now if nil.
	Now func() time.Time
}

// Copies gives records to destinations.
type Copies struct {
	queues []*queue
	sinks  []*sink
	stop   context.CancelFunc // of all sending

	wake        chan struct{}      // the reports; has room for one
	stopReports context.CancelFunc // after the last ones
	reported    chan struct{}      // closed when there are no more reports
}

// New starts a goroutine for each destination; Close ends them.
func New(o Options) (*Copies, error) {
	o.Queue = cmp.Or(o.Queue, defaultQueue)
	if o.OnLoss == nil {
		o.OnLoss = func(error) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	var errs []error
	if o.Queue < 2*audit.MaxRecord {
		errs = append(errs, fmt.Errorf("a queue of %d bytes has no room for two records", o.Queue))
	}
	names := map[string]bool{}
	for i, p := range o.Destinations {
		switch {
		case p == nil:
			errs = append(errs, fmt.Errorf("destination %d is nil", i))
		case names[p.Name()]:
			errs = append(errs, fmt.Errorf("two destinations named %q", p.Name()))
		default:
			names[p.Name()] = true
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("copies of the audit log: %w", errors.Join(errs...))
	}
	ctx, stop := context.WithCancel(context.Background())
	reports, stopReports := context.WithCancel(context.Background())
	c := &Copies{stop: stop, wake: make(chan struct{}, 1), stopReports: stopReports, reported: make(chan struct{})}
	for _, p := range o.Destinations {
		q := newQueue(p, o.Queue, c.wake)
		c.queues = append(c.queues, q)
		if n, ok := p.(interface{ CheckpointEvery() time.Duration }); ok {
			c.sinks = append(c.sinks, &sink{queue: q, every: n.CheckpointEvery(), now: o.Now})
		}
		go q.run(ctx)
	}
	go c.report(reports, o.OnLoss)
	return c, nil
}

// Record gives a line of the log, with or without its newline, to every destination that wants it. It copies the line and never waits.
func (c *Copies) Record(line []byte) {
	line = bytes.TrimSuffix(line, []byte("\n"))
	var own []byte
	for _, q := range c.queues {
		if q.wants == nil || q.wants(line) {
			own = q.give(line, own)
		}
	}
}

// Stats counts what became of the records that one destination wants: each is in one of the four.
type Stats struct {
	Name    string
	Sent    uint64
	Dropped uint64 // there was no room in the queue, or nothing is taken any more
	Failed  uint64 // the destination did not take them, or the process ended first
	Queued  uint64 // those under way included
}

// Stats returns the counts of all destinations.
func (c *Copies) Stats() []Stats {
	out := make([]Stats, 0, len(c.queues))
	for _, q := range c.queues {
		out = append(out, q.stats())
	}
	return out
}

// Close delivers what is queued until ctx ends; what is left then is lost. A place that heeds no context is left behind.
// Close the log first: its last records and checkpoint are copied too.
func (c *Copies) Close(ctx context.Context) error {
	before := make([]uint64, len(c.queues)) // what had failed
	for i, q := range c.queues {
		before[i] = q.stats().Failed
		q.end()
	}
	var errs []error
	for i, q := range c.queues {
		select {
		case <-q.done:
		case <-ctx.Done():
			c.stop()
		}
		if ctx.Err() == nil {
			continue
		}
		// The queue may have given up before it is asked here: what failed meanwhile was not delivered either.
		if s := q.stats(); s.Queued+s.Failed > before[i] {
			errs = append(errs, fmt.Errorf("copies to %s: %d records were not delivered: %w", q.to.Name(), s.Queued+s.Failed-before[i], ctx.Err()))
		}
	}
	c.stop()
	c.stopReports()
	select {
	case <-c.reported:
	case <-ctx.Done():
	}
	return errors.Join(errs...)
}
