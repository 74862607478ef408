package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/gate"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// request is one call on its way through the gate: the session of its caller, and its records.
type request struct {
	stream   *stream
	call     *apiserver.Call
	resp     proto.Message      // of the handler or the server that carried it out
	event    audit.Event        // of the intent, and with an outcome of the terminal record
	result   string             // set by the step that refuses the call
	note     note               // what the diagnostic log says of it, if it has a record of its own
	fault    note               // what it says besides: something does not work
	targets  []apiserver.Target // what the call names
	rules    *Rules             // in force for it
	now      time.Time          // as of when it is decided
	isNamed  bool               // the access list names the caller for it
	hasToken bool               // a token came, and is that of the caller's pod
	token    token.Identity     // what it says; zero if none came
	ran      bool               // the intent is durable, so the operation may have run
	closed   bool               // the terminal record has been handed over
}

// handle takes a call through the gate, and has it carried out if it may be.
func (p *pipe) handle(ctx context.Context, call *apiserver.Call, act func(ctx context.Context, r *request) (proto.Message, error)) (proto.Message, error) {
	s := streamFrom(ctx)
	if s == nil || !s.whole() || !s.claim() {
		return nil, errEnded
	}
	s.conn.earn(framesPerRequest)
	r := &request{stream: s, call: call, now: s.arrived}
	err := gate.Pass(ctx, r, r, func(ctx context.Context) (err error) {
		r.resp, err = act(ctx, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	return r.resp, nil
}

// pipe is that of the call.
func (r *request) pipe() *pipe { return r.stream.conn.pipe }

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

// Open implements gate.Recorder.
func (r *request) Open() {
	r.event = r.pipe().record(r.stream.conn, audit.TypeRequest, audit.StageRequestReceived, r.stream.id)
	r.targets = describe(&r.event, r.call)
}

// RecordPanic implements gate.Recorder: a panic is a record and an error.
func (r *request) RecordPanic(v any) error {
	p := r.pipe()
	err := p.panicked(r.stream)
	if r.closed {
		p.logPanic(r.stream, v)
		return err
	}
	if r.event.ID == "" { // it came before there was a record to add to
		r.event = p.rejection(r.stream, err).Event
	}
	r.event.Outcome = outcome(audit.ResultPanic, err, r.stream.arrived)
	r.closed = true
	if p.final(asPanic(lastRecord{r.event, r.stream.conn}, v)) {
		p.logPanic(r.stream, v)
	}
	return err
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

// logPanic writes the line about a panic. It must be called below the deferred function that has caught it.
func (p *pipe) logPanic(s *stream, v any) {
	p.log.Error("panic in a request", zap.String(logkeys.AuditID, s.id), zap.String(logkeys.Method, shorter(s.fullMethod)),
		zap.String(logkeys.Reason, describePanic(v)), zap.String(logkeys.Stack, stack()))
}

// End implements gate.Recorder: it writes the terminal record.
func (r *request) End(ctx context.Context, err error) error {
	p := r.pipe()
	if err == nil && r.resp == nil {
		err = status.Errorf(codes.Internal, "%s was not answered", r.call.FullMethod)
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
	e.Time = r.stream.arrived.Add(time.Duration(e.Outcome.LatencyUS) * time.Microsecond)
	r.closed = true
	failed := p.audit.final(ctx, lastRecord{e, r.stream.conn})
	if c, ok := errors.AsType[*counted](failed); ok {
		return p.spent(r.stream, c, err)
	}
	r.diagnose(e.Outcome.Code)
	if failed != nil && r.ran {
		return status.Errorf(codes.Internal, "%s ended with %s, but its audit record could not be written (audit id %s)",
			r.call.FullMethod, e.Outcome.Code, r.stream.id)
	}
	return err
}

// Rules implements gate.Session. Those that it returns last decide.
func (r *request) Rules() gate.Rules {
	r.rules = r.pipe().now()
	rules := gate.Rules{List: r.rules.List}
	if r.pipe().roles != nil && r.rules.HasRoles && r.call.Request != nil {
		rules.Roles = r
	}
	if r.rules.RequestPolicy != nil {
		rules.RequestPolicy = r
	}
	return rules
}

// Question implements gate.Session.
func (r *request) Question() access.Call {
	return access.Call{
		Group: r.call.Operation.Group, Version: r.call.Version, Operation: r.call.Operation.Name,
		Caller: r.caller(), Paths: named(r.targets, "path"), Shares: named(r.targets, "share"), Services: named(r.targets, "service"),
	}
}

// RecordDecision implements gate.Recorder. It also sets the permits of the call.
func (r *request) RecordDecision(d access.Decision, byRoles bool) {
	by := r.rules.Policy
	if byRoles {
		by = rolesPolicy
	}
	r.event.Decision = &audit.Decision{
		Effect: audit.Effect(d.Effect), Reason: d.Reason, Rule: d.Rule, Mode: string(d.Mode),
		Policy: by, Permits: d.Permits,
	}
	r.call.Permits = apiserver.Permits{
		Reformat: slices.Contains(d.Permits, access.Reformat), SystemDisk: slices.Contains(d.Permits, access.SystemDisk),
		NodeAccount: slices.Contains(d.Permits, access.NodeAccount), Services: d.Services,
	}
	r.isNamed, r.call.Caller = d.Named, inWords(r.stream.conn.identity())
	p := r.pipe()
	p.metrics.decisions.WithLabelValues(p.name, string(d.Effect), string(d.Mode)).Inc()
}

// Charge implements gate.Session.
func (r *request) Charge(d access.Decision) error {
	p := r.pipe()
	if p.limiter.Call(r.stream.conn.principal(), d.Rule, d.Limits) {
		return nil
	}
	r.result = audit.ResultRejected
	p.metrics.limited.WithLabelValues(p.name).Inc()
	return status.Errorf(codes.ResourceExhausted, "pipe %s: %s calls more often than it may (audit id %s)", p.name, callerText(r), r.stream.id)
}

// Deny implements gate.Recorder: the error names the call, the caller and the audit id.
func (r *request) Deny(refusal gate.Refusal) error {
	if refusal.IsGone {
		r.event.Decision = &audit.Decision{Effect: audit.EffectDeny, Reason: refusal.Reason, Mode: string(access.Enforce), Policy: r.event.Decision.Policy}
	}
	r.result = audit.ResultDenied
	r.noteDenial("call denied", refusal.Reason)
	if r.stream.conn.identity().Doubt != "" {
		r.stream.conn.renew()
	}
	code := codes.PermissionDenied
	if refusal.MayChange { // drivers ask again, and do not after PermissionDenied
		code = codes.Unavailable
	}
	return status.Errorf(code, "pipe %s: %s is denied to %s: %s (audit id %s)",
		r.pipe().name, shorter(r.call.Operation.Name), callerText(r), shorter(refusal.Reason), r.stream.id)
}

// WouldDeny implements gate.Recorder.
func (r *request) WouldDeny(refusal gate.Refusal) {
	r.noteDenial("call would be denied", refusal.Reason)
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

// Alive implements gate.Session: after the caller has ended, any process may write to its connection.
func (r *request) Alive() error { return r.stream.conn.alive() }

// RecordIntent implements gate.Recorder.
func (r *request) RecordIntent(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		r.result = audit.ResultRejected
		return status.FromContextError(err).Err()
	}
	seq, err := r.pipe().audit.intent(ctx, &r.event)
	r.event.IntentSeq = seq
	if err != nil {
		r.result = audit.ResultRejected
		r.fault = note{zap.ErrorLevel, "call refused: its audit record cannot be written", []zap.Field{zap.Error(err)}}
		return status.Errorf(codes.Unavailable, "audit_unavailable: %s did not run, since its audit record could not be written (audit id %s)",
			r.call.FullMethod, r.stream.id)
	}
	r.ran = true
	r.stream.conn.acted.Store(true)
	return nil
}
