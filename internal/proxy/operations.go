package proxy

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/order"
)

// Enter implements gate.Session: it waits until no other call acts on the same object, and no more than the bound act at once.
func (r *request) Enter(ctx context.Context) (leave func(), waited bool, err error) {
	if r.call.Request == nil { // a forwarded call: its objects are not known, and the server behind has an order of its own
		return func() {}, false, nil
	}
	p := r.pipe()
	leave, waited, err = p.queue.Enter(ctx, order.Request{
		Keys:   keys(r.call, r.targets),
		Shared: r.call.Operation.ReadOnly,
		Owner:  r.stream.conn.principal(),
		Group:  groupOf(r.stream.conn.principal()),
		Name:   r.call.Operation.Name,
		ID:     r.stream.id,
	})
	if err != nil {
		r.result = audit.ResultRejected
		code := status.FromContextError(ctx.Err()).Code()
		if errors.Is(err, order.ErrFull) {
			code = codes.ResourceExhausted
			p.metrics.queueFull.Inc()
		}
		return nil, false, status.Errorf(code, "%s %v (audit id %s)", r.call.FullMethod, err, r.stream.id)
	}
	if waited { // then it is decided again
		r.now = time.Now()
	}
	return leave, waited, nil
}

// keys are the objects that a call acts on. An operation that names none and changes the host is its own object.
func keys(call *apiserver.Call, targets []apiserver.Target) []order.Key {
	list := make([]order.Key, 0, len(targets)+1)
	for _, t := range targets {
		if t.Kind == "path" {
			list = append(list, order.Path(t.Value))
			continue
		}
		list = append(list, order.Object(t.Kind, t.Value))
	}
	if len(list) == 0 && !call.Operation.ReadOnly {
		list = append(list, order.Object(call.Operation.Group, call.Operation.Name))
	}
	return list
}

// operate carries out an operation under its own time-out. One that changes the host goes on when its caller leaves, so that
// its end is known and recorded; it ends early only if it takes too long or the pipe is stopped by force.
func (p *pipe) operate(ctx context.Context, r *request, handle apiserver.Handler) (proto.Message, error) {
	if !r.call.Operation.ReadOnly {
		ctx = detached{p.running, ctx}
	}
	ctx, cancel := context.WithTimeout(ctx, p.limits.OperationTimeout)
	defer cancel()
	return r.redact(ctx, handle)
}

// detached has the life of one context and, beside that one's values, those of another.
type detached struct {
	context.Context
	values context.Context
}

// Value implements context.Context.
func (d detached) Value(key any) any {
	if v := d.Context.Value(key); v != nil {
		return v
	}
	return d.values.Value(key)
}

// watch reports operations that go on although their time is over, until ctx is done. They hold their places in the queue.
func (s *Server) watch(ctx context.Context) {
	reported := map[string]bool{}
	periodic.Run(ctx, watchInterval, func() {
		overdue := map[string]bool{}
		for _, o := range s.queue.Overdue(s.limits.OperationTimeout + watchInterval) {
			overdue[o.ID] = true
			if !reported[o.ID] {
				s.metrics.overdue.Inc()
				s.log.Error("an operation does not end although its time is over; others on the same object wait for it",
					zap.String(logkeys.Method, o.Name), zap.String(logkeys.AuditID, o.ID), zap.Duration(logkeys.Duration, o.Ran), zap.Uint32(logkeys.Event, eventStuck))
			}
		}
		reported = overdue
	})
}

// eventStuck is the number under which the Windows event log shows operations that do not end.
const eventStuck = 120

// watchInterval is how long an operation may take to notice that its time is over.
const watchInterval = 5 * time.Second
