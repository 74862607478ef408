package handler

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// operation carries out one request of the newest version.
type operation func(ctx context.Context, call *apiserver.Call) (proto.Message, error)

// typed makes an operation of a function over the generated types. The first interface of generated messages is
// used, because some of the published packages know no other.
func typed[Request, Response protoadapt.MessageV1](do func(context.Context, Request) (Response, error)) operation {
	return called(func(ctx context.Context, request Request, _ *apiserver.Call) (Response, error) {
		return do(ctx, request)
	})
}

// permitted is typed for functions that have dangerous steps.
func permitted[Request, Response protoadapt.MessageV1](do func(context.Context, Request, Permits) (Response, error)) operation {
	return called(func(ctx context.Context, request Request, call *apiserver.Call) (Response, error) {
		return do(ctx, request, call.Permits)
	})
}

// called is typed for functions that need more of the call than its request. With an error, the response is dropped.
func called[Request, Response protoadapt.MessageV1](do func(context.Context, Request, *apiserver.Call) (Response, error)) operation {
	return func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
		request, ok := protoadapt.MessageV1Of(call.Request).(Request)
		if !ok {
			var want Request
			return nil, fmt.Errorf("request is a %T and not a %T", call.Request, want)
		}
		response, err := do(ctx, request, call)
		if err != nil {
			return nil, err
		}
		return protoadapt.MessageV2Of(response), nil
	}
}
