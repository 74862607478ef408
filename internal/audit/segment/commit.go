package segment

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// commit makes a batch durable, in a new segment if the open one fails, and decides about each of its records.
func (l *log) commit(batch []*pending) {
	l.batch = append(l.batch[:0], batch...) // what is refused is taken out of it
	batch = l.batch
	var bytes int64
	for _, p := range batch {
		bytes += int64(len(p.line))
	}
	l.rotate(bytes)
	if l.file != nil {
		var err error
		if batch, err = l.admit(batch, 0); err != nil {
			l.fail(batch, err) // cannot happen: room is kept for operations under way
			return
		}
		if len(batch) == 0 {
			return
		}
		if err = l.write(batch); err == nil {
			finish(batch)
			return
		}
		l.poison(err)
	}
	if l.err != nil && time.Now().Before(l.retry) {
		l.fail(batch, l.err)
		return
	}
	batch, err := l.begin(batch, 0)
	if err != nil {
		l.down(err)
		l.fail(batch, err)
		return
	}
	l.up()
	finish(batch)
	l.prune()
}

// finish says of records that they are in the log.
func finish(batch []*pending) {
	for _, p := range batch {
		p.err = nil
	}
}

// down notes that beginning a segment failed.
func (l *log) down(err error) {
	first := l.err == nil
	l.err, l.retry = err, time.Now().Add(l.options.Retry)
	l.cause = cmp.Or(l.cause, audit.CauseFailure)
	l.fault = cmp.Or(l.fault, clip(err.Error()))
	l.full = nil
	l.notes(func(s *Stats) { s.Err = err })
	if first && l.options.OnFailure == Shutdown {
		l.options.OnShutdown(err)
	}
}

// up notes that a segment was begun.
func (l *log) up() {
	l.err, l.retry = nil, time.Time{}
	l.count(func(*Stats) {})
	l.notes(func(s *Stats) { s.Err = l.failure() })
}

// fail tells the waiting callers that their records are not in the log, or may not be.
func (l *log) fail(batch []*pending, err error) {
	for _, p := range batch {
		l.refuse(p, err)
	}
}

// refuse ends the wait for one record that is not taken.
func (l *log) refuse(p *pending, err error) {
	if !p.tried {
		p.seq = 0
	}
	if errors.Is(err, ErrRefusals) { // not a fault of the log: the caller counts it in a summary
		p.seq = 0
		p.err = err
		return
	}
	if l.options.OnFailure == Continue && !errors.Is(err, ErrBusy) {
		p.seq = 0 // the number goes to another record
		l.lost++
		l.count(func(s *Stats) { s.Lost++ })
		p.err = nil
		return
	}
	l.count(func(s *Stats) { s.Refused++ })
	if !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	p.err = err
}
