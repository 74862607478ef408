package wmi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Why a call was refused before it began.
var (
	ErrClosed = errors.New("the WMI pool is closed")
	ErrBusy   = errors.New("too many calls wait for WMI")
	ErrStuck  = errors.New("too many calls to WMI do not return")
)

// ErrOutcome is wrapped by the error of a call that has begun and whose end was not seen: its effect may have happened or not.
var ErrOutcome = errors.New("its outcome is not known")

// session is one thread's access to WMI. Its methods are called by the thread that opened it, one at a time.
type session interface {
	query(ctx context.Context, namespace, wql string, names []string) ([]Instance, error)
	call(c Call, in []parameter) (Result, error)
	close()
}

// Pool asks WMI from a bounded number of threads, since a call cannot be ended from outside and may never return.
// A call that takes too long is given up: its thread is left behind, its result is dropped, and another thread takes its place.
// So there are never more threads than Workers and MaxStuck together.
type Pool struct {
	options Options
	open    func() (session, error)

	mu      sync.Mutex // guards the fields below
	wake    *sync.Cond // a call was queued, or the pool was closed
	queue   []*job
	idle    int           // workers that wait
	workers int           // workers, without those that are stuck
	stuck   int           // threads whose call was given up and has not returned
	closed  bool          // no call is taken any more
	ended   chan struct{} // closed when closed and no worker is left
}

// job is a call on its way. The pool's lock guards the fields below state.
type job struct {
	op   string
	run  func(session) (any, error)
	stop context.CancelFunc // of the context that run reads with

	state jobState
	begun time.Time
	timer *time.Timer
	value any
	err   error
	done  chan struct{} // closed when state is finished
}

type jobState int

const (
	waiting jobState = iota
	running
	finished // or given up
)

func newPool(o Options, open func() (session, error)) (*Pool, error) {
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	p := &Pool{options: o, open: open, ended: make(chan struct{})}
	p.wake = sync.NewCond(&p.mu)
	return p, nil
}

// do waits for a call's turn and its end, or for the end of ctx. A call whose turn has not come by then is never begun.
// run is given a context that also ends when its caller has left.
func do[T any](ctx context.Context, p *Pool, op string, run func(context.Context, session) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: never begun: %w", op, err)
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	j := &job{op: op, stop: stop, done: make(chan struct{}), run: func(s session) (any, error) { return run(reading, s) }}
	if err := p.enqueue(j); err != nil {
		return none, fmt.Errorf("%s: never begun: %w", op, err)
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		if err := p.leave(j, ctx.Err()); err != nil {
			return none, err
		}
	}
	if j.err != nil {
		return none, j.err
	}
	value, ok := j.value.(T)
	if !ok {
		return none, fmt.Errorf("%s: ended with a %T", op, j.value)
	}
	return value, nil
}

func (p *Pool) enqueue(j *job) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.stuck > p.options.MaxStuck:
		return fmt.Errorf("%w: %d", ErrStuck, p.stuck)
	case len(p.queue) >= p.options.Queue:
		return fmt.Errorf("%w: %d", ErrBusy, len(p.queue))
	}
	p.queue = append(p.queue, j)
	p.staff()
	return nil
}

// staff starts or wakes a worker for the queue. The lock is held.
func (p *Pool) staff() {
	if len(p.queue) > p.idle && p.workers < p.options.Workers {
		p.workers++
		go p.work()
		return
	}
	p.wake.Signal()
}

// leave is for a caller that waits no longer. It returns nil if the call has just ended.
func (p *Pool) leave(j *job, why error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch j.state {
	case waiting:
		p.queue = slices.DeleteFunc(p.queue, func(other *job) bool { return other == j })
		return fmt.Errorf("%s: never begun: %w", j.op, why)
	case running:
		return fmt.Errorf("%s: goes on without its caller, %w: %w", j.op, ErrOutcome, why)
	}
	return nil
}

// finish hands the result to the caller. The lock is held.
func (j *job) finish(value any, err error) {
	j.state, j.value, j.err = finished, value, err
	close(j.done)
}

// giveUp leaves a worker behind that does not return.
func (p *Pool) giveUp(j *job) {
	p.mu.Lock()
	if j.state != running {
		p.mu.Unlock()
		return
	}
	since := time.Since(j.begun)
	j.finish(nil, fmt.Errorf("%s: given up after %s, %w: %w", j.op, since, ErrOutcome, context.DeadlineExceeded))
	j.stop() // if it looks, it comes back
	p.stuck++
	if p.stuck > p.options.MaxStuck {
		p.refuse(ErrStuck)
	}
	p.lose()
	p.mu.Unlock()
	p.options.OnStuck(j.op, since)
}

// lose counts a worker out and another in, if there is something to do. The lock is held.
func (p *Pool) lose() {
	p.workers--
	if p.closed && p.workers == 0 {
		close(p.ended)
	}
	if len(p.queue) > 0 {
		p.staff()
	}
}

// refuse answers every call that waits. The lock is held.
func (p *Pool) refuse(why error) {
	for _, j := range p.queue {
		j.finish(nil, fmt.Errorf("%s: never begun: %w", j.op, why))
	}
	p.queue = nil
}

// Close refuses what waits and waits for what runs, as long as Options.CloseWait says. What is stuck is left behind.
// It may be called again.
func (p *Pool) Close() error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		p.refuse(ErrClosed)
		if p.workers == 0 {
			close(p.ended)
		}
		p.wake.Broadcast()
	}
	p.mu.Unlock()

	timer := time.NewTimer(p.options.CloseWait)
	defer timer.Stop()
	var errs []error
	select {
	case <-p.ended:
	case <-timer.C:
		errs = append(errs, fmt.Errorf("close: a call to WMI still runs after %s", p.options.CloseWait))
	}
	if stats := p.Stats(); stats.Stuck > 0 {
		errs = append(errs, fmt.Errorf("close: %d calls to WMI were given up and never returned", stats.Stuck))
	}
	return errors.Join(errs...)
}

// Stats are counts at one moment.
type Stats struct {
	Waiting int // calls that have not begun
	Running int // calls that have begun and were not given up
	Stuck   int // threads whose call was given up and has not returned
}

// Stats counts.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Stats{Waiting: len(p.queue), Running: p.workers - p.idle, Stuck: p.stuck}
}
