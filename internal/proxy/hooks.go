package proxy

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// errEnded ends requests whose connection is gone.
var errEnded = status.Error(codes.Canceled, "the connection ended before the request was complete")

// tap sees every request that gRPC lets in, before anything else does. It runs under the transport's lock.
func (p *pipe) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := connFrom(ctx)
	if c == nil {
		return ctx, status.Error(codes.Internal, "the request belongs to no connection")
	}
	ctx, err := p.announced(ctx, newStream(c, info.FullMethodName))
	if err != nil {
		c.life.cancelLast()
	}
	return ctx, err
}

// announced returns the context of a request that is let in, or why it is not.
func (p *pipe) announced(ctx context.Context, s *stream) (context.Context, error) {
	c := s.conn
	p.metrics.opened(p.name, kindRequest)
	p.metrics.arrived(p.name)
	ctx = context.WithValue(ctx, streamKey{}, s)
	err := p.admit(ctx, s)
	if err == nil {
		ctx = s.await(ctx)
	}
	if !c.open(s) {
		s.claimed.Store(true)
		p.background.Go(func() {
			defer s.over()
			p.final(p.rejection(s, errEnded))
		})
		return ctx, errEnded
	}
	if err != nil {
		if s.claim() {
			c.later(p.rejection(s, err), s.over)
		}
		return ctx, err
	}
	return ctx, nil
}

// admit gives a request its share of those in progress. Two of the errors are ends that gRPC does not report.
func (p *pipe) admit(ctx context.Context, s *stream) (err error) {
	c := s.conn
	switch {
	case c.expelled.Load():
		return errSpent
	case ctx.Err() != nil:
		return status.Error(codes.DeadlineExceeded, "the deadline had passed when the request arrived")
	case !isMethodName(s.fullMethod):
		return status.Errorf(codes.Unimplemented, "malformed method name: %s", shorter(strconv.Quote(shorter(s.fullMethod))))
	}
	if !c.isStranger() {
		s.release, err = p.shares.take(c.principal(), false, p.passes(s))
		return err
	}
	release, err := p.shares.take(c.principal(), true, false)
	if err != nil {
		return err
	}
	s.release = c.whenTaken(release)
	if !p.passes(s) {
		return nil
	}
	passed, err := p.shares.take(c.principal(), true, true)
	if err != nil {
		release()
		s.release = nil
		return err
	}
	s.release = func() {
		passed() // its messages were taken, which is all that is large
		c.whenTaken(release)()
	}
	return nil
}

// isMethodName says whether gRPC will take name for /service/method.
func isMethodName(name string) bool {
	rest, ok := strings.CutPrefix(name, "/")
	return ok && strings.Contains(rest, "/")
}

// unknown passes on requests for services and methods that this pipe does not have, or answers them as gRPC does.
func (p *pipe) unknown(_ any, ss grpc.ServerStream) error {
	s := streamFrom(ss.Context())
	if s == nil {
		return status.Error(codes.Internal, "the request belongs to no connection")
	}
	if p.pass != nil {
		return p.passOn(s, ss)
	}
	service, method := splitMethod(s.fullMethod)
	err := status.Errorf(codes.Unimplemented, "unknown service %v", shorter(service))
	if service == p.service {
		err = status.Errorf(codes.Unimplemented, "unknown method %v for service %v", shorter(method), service)
	}
	if s.claim() {
		p.final(p.rejection(s, err))
	}
	return err
}

func splitMethod(fullMethod string) (service, method string) {
	name := strings.TrimPrefix(fullMethod, "/")
	i := strings.LastIndex(name, "/")
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

// onBad records a request that could not be decoded or converted.
func (p *pipe) onBad(ctx context.Context, _ string, err error) {
	if s := streamFrom(ctx); s != nil && s.claim() {
		p.final(p.rejection(s, whyCut(ctx, err)))
	}
}

// hooks is the pipe as gRPC's stats.Handler: it ends requests that are not claimed yet, and counts.
type hooks struct{ pipe *pipe }

// TagRPC implements stats.Handler.
func (h hooks) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler. It runs in the request's own goroutine, without locks.
func (h hooks) HandleRPC(ctx context.Context, event stats.RPCStats) {
	s := streamFrom(ctx)
	if s == nil {
		return
	}
	h.pipe.metrics.rpc(h.pipe.label(s.fullMethod), event)
	end, ok := event.(*stats.End)
	if !ok {
		return
	}
	defer s.over()
	if !s.claim() {
		return
	}
	err := end.Error
	if err == nil {
		err = status.Error(codes.Internal, "the request ended without being handled")
	}
	h.pipe.final(h.pipe.rejection(s, err))
}

// TagConn implements stats.Handler; gRPC calls it when HTTP/2 has begun.
func (h hooks) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	c := connFrom(ctx)
	if c == nil {
		return ctx
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.established = true
	c.life = newLifetime(ctx)
	return c.life
}

// HandleConn implements stats.Handler.
func (h hooks) HandleConn(context.Context, stats.ConnStats) {}

// guard keeps a panic while a request is decoded, or its response converted, from ending the process.
func (p *pipe) guard(next grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (resp any, err error) { //nolint:revive // the order is gRPC's
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			s := streamFrom(ctx)
			if s == nil {
				err = status.Error(codes.Internal, "panic")
				return
			}
			err = p.panicked(s)
			if s.claim() && !p.final(asPanic(p.rejection(s, err), v)) {
				return
			}
			p.logPanic(s, v)
		}()
		resp, err = next(srv, ctx, decode, interceptor)
		if err != nil {
			return resp, whyCut(ctx, err)
		}
		if s := streamFrom(ctx); s != nil {
			resp = s.lent(resp)
		}
		return resp, nil
	}
}
