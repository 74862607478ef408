package proxy

import (
	"context"
	"errors"
	"strings"
	"sync"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// lastRecord is the terminal record of a request or a connection, and the connection whose caller it counts for.
type lastRecord struct {
	audit.Event
	conn *conn // nil if the caller is not known
}

// isRefusal says whether nothing was carried out. A connection on which nothing was admitted is one too, whatever was refused on it.
func (e *lastRecord) isRefusal() bool {
	if e.Type == audit.TypeConnection && e.conn != nil {
		return !e.conn.acted.Load()
	}
	return e.IsRefusal()
}

// refusal is the caller that a refusal counts for, and its kind.
func (e *lastRecord) refusal() refusal {
	r := refusal{isStranger: true, event: &e.Event, kind: kindOfEvent(&e.Event)}
	if e.conn != nil {
		r.who, r.isStranger = e.conn.principal(), e.conn.isStranger()
		if e.conn.pipe.methods[e.What.FullMethod] != "" || e.conn.pipe.isNamed(e.What.FullMethod) { // others are names that callers make up
			r.kind.method = e.What.FullMethod
		}
	}
	return r
}

func kindOfEvent(e *audit.Event) refusalKind {
	kind := refusalKind{always: always{record: e.Type, pipe: e.What.Pipe, hasTargets: len(e.What.Targets) > 0}}
	if o := e.Outcome; o != nil {
		kind.result, kind.code, kind.reason = o.Result, o.Code, shorter(strings.ReplaceAll(o.Error, e.ID, ""))
	}
	if d := e.Decision; d != nil {
		kind.effect, kind.mode = d.Effect, d.Mode
		if kind.rule = d.Rule; kind.result == audit.ResultDenied {
			kind.reason = shorter(d.Reason)
		}
	}
	return kind
}

// scratch is the memory in which lengths of records are found out.
var scratch = sync.Pool{New: func() any { b := make([]byte, 0, 2*audit.MaxRecord); return &b }}

// sizeOf is the length of a record in the log.
func sizeOf(e *audit.Event) int {
	memory, ok := scratch.Get().(*[]byte)
	if !ok {
		return audit.MaxRecord
	}
	defer scratch.Put(memory)
	line, err := audit.Encode(*memory, *e)
	if err != nil {
		return audit.MaxRecord
	}
	return len(line) + recordOverhead
}

// recordOverhead is more than what a log adds to a record: number, session and hash.
const recordOverhead = 128

// counted says that a refusal has no record of its own.
type counted verdict

func (c *counted) Error() string { return "counted in summary " + c.id }

// refuse writes the record of a refusal, or counts it. A refusal never keeps an intent waiting for long: it is counted if the log has no room for
// it, or if the backlog is full.
func (l *auditWriter) refuse(ctx context.Context, e lastRecord) error {
	r := e.refusal()
	if v := l.refusals.enter(r, func() int { return sizeOf(&e.Event) }); v.isCounted {
		l.metrics.count(&e.Event)
		return (*counted)(&v)
	}
	if r.isStranger {
		l.strangers <- struct{}{}
		defer func() { <-l.strangers }()
	}
	_ = l.retry(ctx) // the append below meets the same fault and reports it
	seq, err := l.appendRefusal(ctx, &e.Event, r.isStranger)
	if err == nil && seq != 0 {
		l.metrics.recorded(&e.Event, false)
		l.letGo.Store(false)
		return nil
	}
	if err == nil {
		l.letGo.Store(true)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	isTight := errors.Is(err, segment.ErrRefusals)
	if err == nil || isTight || errors.Is(err, segment.ErrFull) || len(l.backlog) >= maxBacklog {
		v := l.refusals.turnedAway(r, isTight)
		l.metrics.count(&e.Event)
		return (*counted)(&v)
	}
	l.metrics.auditErrors.Inc()
	e.Again = seq != 0
	l.keep(e)
	l.log.Error("audit record waits for the log", zap.String(logkeys.AuditID, e.ID), zap.Error(err))
	return err
}

// appendRefusal writes a refusal to the part of the log that such callers have.
func (l *auditWriter) appendRefusal(ctx context.Context, e *audit.Event, isStranger bool) (seq uint64, err error) {
	if isStranger {
		ctx = segment.OfStranger(ctx)
	}
	return l.writer.Append(ctx, e)
}

// summarise writes the summaries that are due, or all of them, side by side: the log makes those durable together that come together.
func (l *auditWriter) summarise(ctx context.Context, all bool) error {
	l.summaries.Lock()
	defer l.summaries.Unlock()
	list := l.refusals.take(all)
	errs := make([]error, len(list))
	var group errgroup.Group
	group.SetLimit(summariesAtOnce)
	for i, d := range list {
		group.Go(func() error {
			e := d.summary.event()
			seq, err := l.appendRefusal(ctx, &e, d.isStranger)
			if err == nil && seq != 0 {
				l.metrics.summarised(&e)
				l.refusals.written(d)
				return nil
			}
			l.refusals.putBack(d, errors.Is(err, segment.ErrRefusals))
			errs[i] = err
			return nil
		})
	}
	_ = group.Wait() // each error has its own place
	return errors.Join(errs...)
}

// unwritten is how many requests and connections have ended and are in no record.
func (l *auditWriter) unwritten() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.refusals.waiting()
	for i := range l.backlog {
		n += l.backlog[i].Count()
	}
	return n
}

// spent is the answer to a call that is counted with others: it names the record that counts it. A stranger who has used up its budget
// is told so and loses its connection, so that a flood ends where it begins.
func (p *pipe) spent(s *stream, c *counted, err error) error {
	if c.isSpent && s.conn.expel() {
		return status.Errorf(codes.ResourceExhausted, "pipe %s: refused too often: refusals are counted, and the connection ends (audit id %s)", p.name, c.id)
	}
	st := statusOf(err)
	return status.Error(st.Code(), strings.ReplaceAll(st.Message(), s.id, c.id))
}
