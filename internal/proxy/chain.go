package proxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// chain puts the interceptors before the handler, the first one outermost.
func chain(handle apiserver.Handler, interceptors ...apiserver.Interceptor) apiserver.Handler {
	for i := len(interceptors) - 1; i >= 0; i-- {
		intercept, next := interceptors[i], handle
		handle = func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
			return intercept(ctx, call, next)
		}
	}
	return handle
}

// chain is the way of every call, in this order.
func (p *pipe) chain(handle apiserver.Handler) apiserver.Handler {
	return chain(handle,
		p.recovered,   // a panic anywhere below is a record and an error
		p.audited,     // one terminal record, whatever happens below
		p.vouched,     // the caller's token, on pipes that look at it
		p.authorized,  // the access list
		p.judged,      // the request policy
		p.ordered,     // nobody else acts on the same object
		p.decideAgain, // token, access list and request policy once more, if the call had to wait
		p.alive,       // the caller is still the process that was asked about
		p.intended,    // the intent is durable
		p.operate,     // a time-out of the operation's own; a caller that leaves does not end what has begun
		p.scrubbed,    // what the host says without the secrets of the request
	)
}

// request is what the chain knows about a call.
type request struct {
	stream   *stream
	event    audit.Event        // of the intent, and with an outcome of the terminal record
	result   string             // set by the interceptor that refuses the call
	note     note               // what the diagnostic log says of it, if it has a record of its own
	fault    note               // what it says besides: something does not work
	targets  []apiserver.Target // what the call names
	rules    *Rules             // what decides about it
	now      time.Time          // as of when it is decided
	sent     metadata.MD        // with the token; nil if none was looked for
	isNamed  bool               // the access list names the caller for it
	waited   bool               // in the queue, so that it is decided again
	hasToken bool               // a token came, and is that of the caller's pod
	token    token.Identity     // what it says; zero if none came
	ran      bool               // the intent is durable, so the operation may have run
	closed   bool               // the terminal record has been handed over
}

// note is a line of the diagnostic log about one call.
type note struct {
	level  zapcore.Level
	text   string // none if empty
	fields []zap.Field
}

// maxFaultText is how much of an error of a request policy is logged, in bytes: it has a stack, and what the caller sent perhaps.
const maxFaultText = 2 << 10

// diagnose writes the line about a call. It is called for calls that have a record of their own: what callers can cause here without end is bounded
// by the budgets of the audit log, and what they have chosen of a line is short.
func (r *request) diagnose(code string) {
	if r.note.text == "" {
		r.note = note{zap.DebugLevel, "call", []zap.Field{zap.String(logkeys.Code, code)}}
	}
	for _, n := range []note{r.fault, r.note} {
		if n.text == "" {
			continue
		}
		if entry := r.stream.conn.pipe.log.Check(n.level, n.text); entry != nil {
			entry.Write(append(n.fields, zap.String(logkeys.AuditID, r.stream.id), zap.String(logkeys.Method, shorter(r.stream.fullMethod)))...)
		}
	}
}

// noteDenial has the line about a call say that it is denied, or would be.
func (r *request) noteDenial(text, reason string) {
	r.note = note{zap.InfoLevel, text, []zap.Field{zap.String(logkeys.Caller, callerText(r)), zap.String(logkeys.Reason, shorter(reason))}}
}

type requestKey struct{}

func requestFrom(ctx context.Context) *request {
	r, _ := ctx.Value(requestKey{}).(*request)
	return r
}

// recovered claims the stream, and turns a panic into a record and an error.
func (p *pipe) recovered(ctx context.Context, call *apiserver.Call, next apiserver.Handler) (resp proto.Message, err error) {
	s := streamFrom(ctx)
	if s == nil || !s.whole() || !s.claim() {
		return nil, errEnded
	}
	s.conn.earn(framesPerRequest)
	r := &request{stream: s}
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		resp, err = nil, p.panicked(s)
		if r.closed {
			p.logPanic(s, v)
			return
		}
		if r.event.ID == "" { // it came before there was a record to add to
			r.event = p.rejection(s, err).Event
		}
		r.event.Outcome = outcome(audit.ResultPanic, err, s.arrived)
		r.closed = true
		if p.final(asPanic(lastRecord{r.event, s.conn}, v)) {
			p.logPanic(s, v)
		}
	}()
	return next(context.WithValue(ctx, requestKey{}, r), call)
}

// asPanic makes e the terminal record of a panic.
func asPanic(e lastRecord, v any) lastRecord {
	e.Stage = audit.StagePanic
	o := *e.Outcome
	o.Result, o.Error = audit.ResultPanic, describePanic(v)
	e.Outcome = &o
	return e
}

// panicked counts a panic and returns what the caller is told.
func (p *pipe) panicked(s *stream) error {
	p.metrics.panics.Inc()
	return status.Errorf(codes.Internal, "%s: internal error (audit id %s)", shorter(s.fullMethod), s.id)
}

// logPanic writes the line about a panic. It must be called by the deferred function that has caught it.
func (p *pipe) logPanic(s *stream, v any) {
	p.log.Error("panic in a request", zap.String(logkeys.AuditID, s.id), zap.String(logkeys.Method, shorter(s.fullMethod)),
		zap.String(logkeys.Reason, describePanic(v)), zap.String(logkeys.Stack, stack()))
}

// audited opens the record, and closes it when all is over.
func (p *pipe) audited(ctx context.Context, call *apiserver.Call, next apiserver.Handler) (proto.Message, error) {
	r := requestFrom(ctx)
	r.event = p.record(r.stream.conn, audit.TypeRequest, audit.StageRequestReceived, r.stream.id)
	r.targets = describe(&r.event, call)
	r.now = r.stream.arrived

	resp, err := next(ctx, call)
	if err == nil && resp == nil {
		err = status.Errorf(codes.Internal, "%s was not answered", call.FullMethod)
	}
	result := r.result
	switch {
	case result == "" && err == nil:
		result = audit.ResultOK
	case result == "":
		result = audit.ResultError
	}
	e := r.event
	e.Stage, e.Outcome = audit.StageResponseComplete, outcome(result, err, r.stream.arrived)
	e.Outcome.CallerLeft = r.ran && ctx.Err() != nil
	e.Time = r.stream.arrived.Add(microseconds(e.Outcome.LatencyUS))
	r.closed = true
	failed := p.ledger.final(ctx, lastRecord{e, r.stream.conn})
	if c, ok := errors.AsType[*counted](failed); ok {
		return nil, p.spent(r.stream, c, err)
	}
	r.diagnose(e.Outcome.Code)
	if failed != nil && r.ran {
		return nil, status.Errorf(codes.Internal, "%s ended with %s, but its audit record could not be written (audit id %s)",
			call.FullMethod, e.Outcome.Code, r.stream.id)
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// authorized asks the access list, in the words of the newest API version.
func (p *pipe) authorized(ctx context.Context, call *apiserver.Call, next apiserver.Handler) (proto.Message, error) {
	r := requestFrom(ctx)
	r.rules = p.now()
	who := r.stream.conn.identity()
	d := r.rules.List.Decide(access.Call{
		Group: call.Operation.Group, Version: call.Version, Operation: call.Operation.Name,
		Caller: r.caller(), Paths: named(r.targets, "path"), Shares: named(r.targets, "share"), Services: named(r.targets, "service"),
	})
	d, by := p.byRole(ctx, r, call, d)
	r.event.Decision = &audit.Decision{
		Effect: audit.Effect(d.Effect), Reason: d.Reason, Rule: d.Rule, Mode: string(d.Mode),
		Policy: by, Permits: d.Permits,
	}
	for _, name := range d.Permits {
		call.Permits.Reformat = call.Permits.Reformat || name == access.Reformat
		call.Permits.SystemDisk = call.Permits.SystemDisk || name == access.SystemDisk
		call.Permits.NodeAccount = call.Permits.NodeAccount || name == access.NodeAccount
	}
	r.isNamed = d.Named
	call.Permits.Services, call.Caller = d.Services, inWords(who)
	p.metrics.decisions.WithLabelValues(p.name, string(d.Effect), string(d.Mode)).Inc()
	if !r.waited && !p.limiter.Call(r.stream.conn.principal(), d.Rule, d.Limits) {
		r.result = audit.ResultRejected
		p.metrics.limited.WithLabelValues(p.name).Inc()
		return nil, status.Errorf(codes.ResourceExhausted, "pipe %s: %s calls more often than it may (audit id %s)", p.name, callerText(r), r.stream.id)
	}
	if !d.Allowed {
		return nil, p.deny(r, call, d.Reason)
	}
	if d.Effect == access.Deny {
		r.noteDenial("call would be denied", d.Reason)
	}
	return next(ctx, call)
}

// deny is the answer to a refused call: what was asked, by whom, and where to read more.
func (p *pipe) deny(r *request, call *apiserver.Call, reason string) error {
	r.result = audit.ResultDenied
	r.noteDenial("call denied", reason)
	if r.stream.conn.identity().Doubt != "" {
		r.stream.conn.renew()
	}
	return status.Errorf(codes.PermissionDenied, "pipe %s: %s is denied to %s: %s (audit id %s)",
		p.name, shorter(call.Operation.Name), callerText(r), shorter(reason), r.stream.id)
}

// callerText names the caller to itself and in diagnostics, with what its file system lets it choose cut to a length.
func callerText(r *request) string {
	who := r.stream.conn.identity()
	process := fmt.Sprintf("user %s, process %d, program %s", who.User.SID, who.Process.PID, shorter(strconv.Quote(shorter(who.Process.Exe))))
	if !who.HasPod() {
		return process
	}
	return fmt.Sprintf("container %s of pod %s/%s, service account %q, %s", who.Container.Name, who.Pod.Namespace, who.Pod.Name, who.Pod.ServiceAccount, process)
}

// alive refuses a call whose caller has ended: what writes to its connection now may be anybody.
func (p *pipe) alive(ctx context.Context, call *apiserver.Call, next apiserver.Handler) (proto.Message, error) {
	r := requestFrom(ctx)
	if err := r.stream.conn.alive(); err != nil {
		reason := "the caller cannot be vouched for any more: " + err.Error()
		r.event.Decision.Effect, r.event.Decision.Reason, r.event.Decision.Mode = audit.EffectDeny, reason, string(access.Enforce)
		return nil, p.deny(r, call, reason)
	}
	return next(ctx, call)
}

// intended writes the intent, and lets the operation run only if it is durable.
func (p *pipe) intended(ctx context.Context, call *apiserver.Call, next apiserver.Handler) (proto.Message, error) {
	r := requestFrom(ctx)
	if err := ctx.Err(); err != nil {
		r.result = audit.ResultRejected
		return nil, status.FromContextError(err).Err()
	}
	seq, err := p.ledger.intent(ctx, &r.event)
	r.event.IntentSeq = seq
	if err != nil {
		r.result = audit.ResultRejected
		r.fault = note{zap.ErrorLevel, "call refused: its audit record cannot be written", []zap.Field{zap.Error(err)}}
		return nil, status.Errorf(codes.Unavailable, "audit_unavailable: %s did not run, since its audit record could not be written (audit id %s)",
			call.FullMethod, r.stream.id)
	}
	r.ran = true
	r.stream.conn.acted.Store(true)
	return next(ctx, call)
}
