package proxy

import (
	"context"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// ledger keeps the order of things with the log: no intent is written while a record that should stand before it is
// missing. Records of what has already happened wait for the log to come back; what has not begun does not begin.
type ledger struct {
	writer  audit.Writer
	metrics *metrics
	log     *zap.Logger

	mu      sync.Mutex // guards backlog, and is held while it is written, so that its order stays
	backlog []audit.Event
}

// intent makes the record durable, or returns an error: the operation must then not run. With an error, seq says
// under which number the record would be found if it is there after all.
func (l *ledger) intent(ctx context.Context, e *audit.Event) (seq uint64, err error) {
	ctx = context.WithoutCancel(ctx)
	if err := l.settle(ctx); err != nil {
		return 0, fmt.Errorf("records of earlier calls are still to be written: %w", err)
	}
	seq, err = l.writer.Append(ctx, e)
	if err != nil {
		l.metrics.auditErrors.Inc()
	}
	return seq, err
}

// final writes a record of something that has happened. If that fails the record is kept, and written before the next intent.
func (l *ledger) final(ctx context.Context, e audit.Event) error {
	ctx = context.WithoutCancel(ctx)
	l.mu.Lock()
	waiting := len(l.backlog) > 0
	l.mu.Unlock()
	if waiting {
		_ = l.settle(ctx) // the append below meets the same fault and reports it
	}
	seq, err := l.writer.Append(ctx, &e)
	if err == nil {
		l.metrics.recorded(&e)
		return nil
	}
	l.metrics.auditErrors.Inc()
	e.Again = seq != 0
	l.mu.Lock()
	defer l.mu.Unlock()
	// The end of what has an intent always waits: those are as few as the calls in flight, since none is admitted now.
	if len(l.backlog) >= maxBacklog && e.IntentSeq == 0 {
		l.metrics.auditLost.Inc()
		l.log.Error("audit record lost: the backlog is full", zap.String(logkeys.AuditID, e.ID), zap.Error(err))
		return err
	}
	l.backlog = append(l.backlog, e)
	l.metrics.backlog.Set(float64(len(l.backlog)))
	l.log.Error("audit record waits for the log", zap.String(logkeys.AuditID, e.ID), zap.Error(err))
	return err
}

// settle writes what is waiting.
func (l *ledger) settle(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.backlog) > 0 {
		e := &l.backlog[0]
		seq, err := l.writer.Append(ctx, e)
		if err != nil {
			e.Again = e.Again || seq != 0
			return err
		}
		l.metrics.recorded(e)
		l.backlog = l.backlog[1:]
		l.metrics.backlog.Set(float64(len(l.backlog)))
	}
	return nil
}
