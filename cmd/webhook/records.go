package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
)

// maxWaiting bounds the records that wait to be written. At a few thousand decisions a second it covers a reader
// of standard output that stalls for a second. They wait as they will be written, so that each holds little more than
// audit.MaxRecord bytes, and all of them some 40 MiB, whatever clients sent.
const maxWaiting = 4096

// closeTimeout is how long the end of the process waits for records to be written.
const closeTimeout = 5 * time.Second

var (
	errStuck  = errors.New("audit records were not taken in time at the end")
	errFull   = errors.New("too many audit records wait to be written")
	errClosed = errors.New("the audit log is closed")
)

// records hands audit records to a writer in the background, because a pipe that is not read would otherwise stop
// every admission. Where each record is required, it writes them at once instead.
//
// A record of an object that passed is dropped, and counted, if too many wait. A record of a refusal never is: it waits
// for its turn, and the answer with it. Should the API server give up on the answer, the object is refused as well.
type records struct {
	to      audit.Writer
	close   func() error
	failed  func(error)       // hears of a record that waited and could not be written
	waiting chan *audit.Event // nil to write at once
	ending  chan struct{}     // closed when Close begins
	done    chan struct{}

	once   sync.Once
	mu     sync.RWMutex // guards closed, and the closing of waiting
	closed bool
}

// openRecords opens the directory or stream that the options name. Nothing is ever removed from a directory. ctx ends the reading of what is in it.
func openRecords(ctx context.Context, o options, stdout io.Writer, log *zap.Logger, failed func(error)) (*records, error) {
	r := &records{close: func() error { return nil }, failed: failed}
	if o.Audit.Log == "-" {
		r.to = audit.NewStream(stdout)
	} else {
		w, err := segment.Open(ctx, o.Audit.Log, segment.Options{NoSync: !o.Audit.Required, OnFault: func(err error) {
			if err == nil {
				log.Warn("audit log works again")
				return
			}
			log.Error("audit log", zap.Error(err))
		}})
		if err != nil {
			return nil, err
		}
		r.to, r.close = w, w.Close
	}
	if !o.Audit.Required {
		r.start()
	}
	return r, nil
}

func (r *records) start() {
	r.waiting, r.ending, r.done = make(chan *audit.Event, maxWaiting), make(chan struct{}), make(chan struct{})
	go r.drain()
}

// Append implements audit.Writer. The number of a record that waits is not known yet and is returned as 0; that it
// waits is no promise that it will be written.
func (r *records) Append(ctx context.Context, e *audit.Event) (uint64, error) {
	if r.waiting == nil {
		return r.to.Append(ctx, e)
	}
	short, err := audit.Fit(*e)
	if err != nil {
		return 0, err
	}
	e = &short
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.closed {
		return 0, errClosed
	}
	select {
	case r.waiting <- e:
		return 0, nil
	default:
	}
	if e.Decision != nil && e.Decision.Effect == audit.EffectAllow {
		return 0, errFull
	}
	select {
	case r.waiting <- e:
		return 0, nil
	case <-r.ending:
		return 0, errClosed
	}
}

// drain writes what waits until waiting is closed.
func (r *records) drain() {
	defer close(r.done)
	for e := range r.waiting {
		if _, err := r.to.Append(context.Background(), e); err != nil {
			r.failed(err)
		}
	}
}

// Close writes what waits and closes the log. It gives up on a reader that takes nothing.
func (r *records) Close() error {
	if r.waiting != nil {
		r.once.Do(func() {
			close(r.ending) // ends the wait for room
			r.mu.Lock()
			defer r.mu.Unlock()
			r.closed = true
			close(r.waiting)
		})
		select {
		case <-r.done:
		case <-time.After(closeTimeout):
			return errStuck
		}
	}
	return r.close()
}
