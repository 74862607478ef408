package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// auditWriter keeps the order of things with the log: no intent is written while a record that should stand before it is
// missing. Records of what has already happened wait for the log to come back; what has not begun does not begin.
//
// A log that is told to go on without records takes one and gives it no number. Nothing waits for such a log but the ends of
// intents that are in it, since those would stay open.
type auditWriter struct {
	writer  audit.Writer
	metrics *metrics
	log     *zap.Logger
	letGo   atomic.Bool // the last record that was tried was let go

	refusals  *refusalCounter
	strangers chan struct{} // holds something for each record of a stranger's refusal that is being written
	summaries sync.Mutex    // one goroutine at a time writes them

	mu      sync.Mutex // guards backlog, and is held while it is written, so that its order stays
	backlog []lastRecord
}

func newAuditWriter(writer audit.Writer, m *metrics, log *zap.Logger) *auditWriter {
	return &auditWriter{writer: writer, metrics: m, log: log, refusals: newRefusalCounter(refusalBudgets), strangers: make(chan struct{}, strangersRecords)}
}

// intent makes the record durable, or returns an error: the operation must then not run. With an error, seq says
// under which number the record would be found if it is there after all.
func (l *auditWriter) intent(ctx context.Context, e *audit.Event) (seq uint64, err error) {
	ctx = context.WithoutCancel(ctx)
	if err := l.retry(ctx); err != nil {
		return 0, fmt.Errorf("records of earlier calls are still to be written: %w", err)
	}
	seq, err = l.writer.Append(ctx, e)
	if errors.Is(err, segment.ErrBusy) && l.letGo.Load() && l.settle(ctx) == nil { // the log works, and what it let go keeps its room
		seq, err = l.writer.Append(ctx, e)
	}
	switch {
	case err != nil:
		l.metrics.auditErrors.Inc()
		if errors.Is(err, segment.ErrUnavailable) {
			seq = 0 // a segment that failed counts up to where it did, and the number is given to the next record
		}
	case seq == 0:
		l.metrics.auditLost.Inc()
		l.letGo.Store(true)
	default:
		l.letGo.Store(false)
	}
	return seq, err
}

// final writes a record of something that has happened. If that fails the record is kept, and written before the next intent. A refusal may be
// counted instead, which is an error of type counted.
func (l *auditWriter) final(ctx context.Context, e lastRecord) error {
	ctx = context.WithoutCancel(ctx)
	if e.isRefusal() {
		return l.refuse(ctx, e)
	}
	_ = l.retry(ctx) // the append below meets the same fault and reports it
	seq, err := l.writer.Append(segment.OfAct(ctx), &e.Event)
	if err == nil && seq != 0 {
		l.metrics.recorded(&e.Event, false)
		l.letGo.Store(false)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		if l.letGo.Store(true); e.IntentSeq == 0 {
			l.metrics.lose(&e.Event)
			return nil
		}
		e.Again = true // whether it was tried is not known
		l.keep(e)
		return nil
	}
	l.metrics.auditErrors.Inc()
	e.Again = seq != 0
	// The end of what has an intent always waits: those are as few as the calls in flight, since none is admitted now.
	if len(l.backlog) >= maxBacklog && e.IntentSeq == 0 {
		l.metrics.lose(&e.Event)
		l.log.Error("audit record lost: the backlog is full", zap.String(logkeys.AuditID, e.ID), zap.Error(err))
		return err
	}
	l.keep(e)
	l.log.Error("audit record waits for the log", zap.String(logkeys.AuditID, e.ID), zap.Error(err))
	return err
}

// keep has a record wait. l.mu must be held.
func (l *auditWriter) keep(e lastRecord) {
	l.metrics.wait(&e.Event)
	l.backlog = append(l.backlog, e)
	l.metrics.backlog.Set(float64(len(l.backlog)))
}

// retry is settle, but leaves a log alone that lets records go: it would count this one as let go each time. Once a new record gets
// a number, those that wait are tried.
func (l *auditWriter) retry(ctx context.Context) error {
	if l.letGo.Load() {
		return nil
	}
	return l.settle(ctx)
}

// watch tries again until ctx is done: the end of an operation should not wait in memory for the next caller.
func (l *auditWriter) watch(ctx context.Context) {
	periodic.Run(ctx, watchInterval, func() {
		_ = l.retry(ctx)            // the next call meets the same fault, and the backlog shows
		_ = l.summarise(ctx, false) // those that are not taken wait, and the gauge shows
	})
}

// settle writes what is waiting.
func (l *auditWriter) settle(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.backlog) > 0 {
		e := &l.backlog[0]
		var seq uint64
		var err error
		if e.isRefusal() {
			seq, err = l.appendRefusal(ctx, &e.Event, e.refusal().isStranger)
		} else {
			seq, err = l.writer.Append(segment.OfAct(ctx), &e.Event)
		}
		switch {
		case e.isRefusal() && (errors.Is(err, segment.ErrRefusals) || errors.Is(err, segment.ErrFull)):
			l.refusals.turnedAway(e.refusal(), true)
			l.metrics.unwait(&e.Event)
		case err != nil:
			e.Again = e.Again || seq != 0
			return err
		case seq == 0:
			l.letGo.Store(true)
			return nil
		default:
			l.metrics.recorded(&e.Event, true)
		}
		l.backlog = l.backlog[1:]
		l.metrics.backlog.Set(float64(len(l.backlog)))
	}
	return nil
}
