package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/pipeguard/pipeguard/internal/core/gate"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// Forwarded is a pipe whose calls, if the access list allows them by method, are passed on unread.
type Forwarded struct {
	// Pipe is the name that callers open, without \\.\pipe\. Rules have the full name.
	Pipe string
	// Serve passes on one call that has been admitted, of whatever kind, and returns its status when it has ended. What is
	// received from and sent to stream are *raw.Message. ctx ends with the call.
	Serve func(ctx context.Context, fullMethod string, stream grpc.ServerStream) error
}

// serveFunc is Forwarded.Serve.
type serveFunc func(ctx context.Context, fullMethod string, stream grpc.ServerStream) error

const (
	// fullName begins the groups of forwarded pipes, as in package acl.
	fullName = `\\.\pipe\`
	// MaxForwardedMessage is the largest message of a forwarded call in bytes, in either direction. It is what gRPC
	// receives unless told otherwise. No message is read before its call has been allowed.
	MaxForwardedMessage = 4 << 20
)

func checkForward(forward []Forwarded) error {
	var errs []error
	names := map[string]bool{}
	for _, f := range forward {
		name := strings.ToLower(f.Pipe)
		switch {
		case name == "" || strings.HasPrefix(name, "csi-proxy-"):
			errs = append(errs, fmt.Errorf("proxy.Options.Forward: pipe %q is missing or one of the node API's", f.Pipe))
		case names[name]:
			errs = append(errs, fmt.Errorf("proxy.Options.Forward has %s twice", f.Pipe))
		case f.Serve == nil:
			errs = append(errs, fmt.Errorf("proxy.Options.Forward: nothing serves %s", f.Pipe))
		}
		names[name] = true
	}
	return errors.Join(errs...)
}

// newForwarded makes a pipe that has no methods of its own.
func newForwarded(f Forwarded, o Options, all shared) *pipe {
	p := basePipe(f.Pipe, apiserver.GroupVersion{Group: fullName + f.Pipe}, o, all)
	p.pass = f.Serve
	p.server = p.newServer(o, grpc.MaxRecvMsgSize(MaxForwardedMessage))
	return p
}

func (p *pipe) isForwarded() bool { return strings.HasPrefix(p.gv.Group, fullName) }

// isNamed says whether the access list has a method by its own name.
func (p *pipe) isNamed(fullMethod string) bool {
	return p.now().List.Names(p.gv.Group, p.gv.Version, fullMethod)
}

// passOn takes a call through the gate whose messages cannot be read here. It begins when the intent is durable.
func (p *pipe) passOn(s *stream, ss grpc.ServerStream) error {
	call := &apiserver.Call{
		Operation: &apiserver.Operation{Group: p.gv.Group, Name: s.fullMethod},
		Version:   p.gv.Version, Method: s.fullMethod, FullMethod: s.fullMethod,
	}
	_, err := p.handle(ss.Context(), call, func(ctx context.Context, r *request) (proto.Message, error) {
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		v := &recheckedStream{ServerStream: ss, ctx: ctx, stream: s, call: *call, asked: *r, rules: r.rules, decided: r.now}
		defer v.watch(end)()
		err := p.pass(ctx, s.fullMethod, v)
		if denied := v.denial(); denied != nil {
			r.noteDenial("call ended: it may not go on", status.Convert(denied).Message())
			return nil, denied
		}
		if err != nil {
			return nil, statusOf(err).Err()
		}
		return &emptypb.Empty{}, nil // the responses have been sent; this says that the call was answered
	})
	return err
}

// passes says whether a request is passed on unread, with messages that may be large.
func (p *pipe) passes(s *stream) bool { return p.pass != nil && s.method == "" }

// recheckedStream is a stream whose caller is checked again with every message after the first: each may be another request. The
// answers, too, are for the caller alone, and not for a process that it has left its connection to.
type recheckedStream struct {
	grpc.ServerStream
	ctx    context.Context
	stream *stream
	begun  atomic.Bool

	call  apiserver.Call // these two as they were when the call was allowed
	asked request

	mu      sync.Mutex // guards the fields below
	rules   *Rules     // that allowed it last
	decided time.Time
	denied  error // what the stream has ended with
}

// decideEvery is how long a decision holds for a stream while its rules stay the same: permissions end by time, too.
const decideEvery = 10 * time.Second

// overdueEvery is how often it is asked whether the log must keep too much for a stream: a disk is full within seconds.
const overdueEvery = time.Second

// Context returns the context behind the gate.
func (v *recheckedStream) Context() context.Context { return v.ctx }

// RecvMsg implements grpc.ServerStream.
func (v *recheckedStream) RecvMsg(m any) error {
	if err := v.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	v.earn(m)
	if v.begun.CompareAndSwap(false, true) { // the gate has just asked
		return nil
	}
	return v.still()
}

// SendMsg implements grpc.ServerStream.
func (v *recheckedStream) SendMsg(m any) error {
	if err := v.still(); err != nil {
		return err
	}
	v.earn(m)
	return v.ServerStream.SendMsg(v.stream.lent(m))
}

func (v *recheckedStream) earn(m any) {
	if message, ok := m.(*raw.Message); ok {
		v.stream.conn.earnMessage(len(*message))
	}
}

func (v *recheckedStream) still() error {
	if err := v.stream.conn.alive(); err != nil {
		return status.Errorf(codes.PermissionDenied, "the caller's identity can no longer be verified: %v", err)
	}
	return v.allowed()
}

// allowed asks access list and request policy anew about a stream if the rules are others, or the decision is old; then it also looks whether
// the log must keep too much for the stream.
func (v *recheckedStream) allowed() (err error) {
	p := v.stream.conn.pipe
	v.mu.Lock()
	defer v.mu.Unlock()
	defer func() { // this runs on the goroutine that passes messages on
		if x := recover(); x != nil {
			p.logPanic(v.stream, x)
			p.metrics.panics.Inc()
			err = v.denied
		}
	}()
	rules := p.now()
	if v.denied != nil {
		return v.denied
	}
	if began := v.asked.event.IntentSeq; began != 0 && began <= p.overdue() {
		v.denied = errOverdue
		return v.denied
	}
	if rules == v.rules && time.Since(v.decided) < decideEvery {
		return nil
	}
	r, call := v.asked, v.call
	r.call, r.now = &call, time.Now()
	v.denied = errUndecided // should what decides panic
	v.denied = gate.Authorize(v.ctx, &r, &r)
	v.rules, v.decided = rules, r.now
	return v.denied
}

// errOverdue ends a stream whose beginning the log has kept for as long as it may: nothing that is behind it can be removed either.
var errOverdue = status.Error(codes.Aborted, "the audit log can keep the beginning of this call no longer: begin it again")

var errUndecided = status.Error(codes.Internal, "no decision about the rest of the stream")

// watch asks whether the stream is still allowed while nothing is said on it: a silent one takes a place. It ends it if not.
func (v *recheckedStream) watch(end context.CancelCauseFunc) (stop func()) {
	ctx, stop := context.WithCancel(v.ctx)
	go periodic.Run(ctx, overdueEvery, func() {
		if err := v.still(); err != nil {
			end(err)
			stop()
		}
	})
	return stop
}

// denial is why the stream is not allowed any more; nil if it is.
func (v *recheckedStream) denial() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.denied
}
