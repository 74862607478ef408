package request

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// Hooks are what an interceptor asks of the chain that it stands in.
type Hooks struct {
	// Subject says who calls and when the call arrived. Its error refuses the call.
	Subject func(ctx context.Context, call *apiserver.Call) (*Subject, error)
	// Decided hears of every decision before anything is done: it records it and, of a denial, returns what the caller is
	// told. Its error always ends the call.
	Decided func(ctx context.Context, call *apiserver.Call, d Decision) error
	// LogOnly says that denials of this call are recorded and not enforced. nil means that they are enforced.
	LogOnly func(ctx context.Context, call *apiserver.Call) bool
}

// Interceptor asks the policy between the access list and the queue.
func (e *Evaluator) Interceptor(h Hooks) apiserver.Interceptor {
	return func(ctx context.Context, call *apiserver.Call, next apiserver.Handler) (proto.Message, error) {
		d := e.about(ctx, call, h)
		if err := h.Decided(ctx, call, d); err != nil {
			return nil, err
		}
		if !d.Allowed() && (h.LogOnly == nil || !h.LogOnly(ctx, call)) { // whoever decided forgot to refuse
			return nil, status.Errorf(codes.PermissionDenied, "%s: %s", d.Rule, d.Reason)
		}
		return next(ctx, call)
	}
}

func (e *Evaluator) about(ctx context.Context, call *apiserver.Call, h Hooks) Decision {
	s, err := h.Subject(ctx, call)
	if err != nil || s == nil {
		return deny(CodeInput, "the caller cannot be shown to the request policy", "", err)
	}
	return e.Decide(ctx, call, s)
}
