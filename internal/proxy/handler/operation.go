package handler

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
)

// operation carries out one request of the newest version.
type operation func(ctx context.Context, request proto.Message, permits Permits) (proto.Message, error)

// typed makes an operation of a function over the generated types. The first interface of generated messages is
// used, because some of the published packages know no other.
func typed[Request, Response protoadapt.MessageV1](do func(context.Context, Request) (Response, error)) operation {
	return permitted(func(ctx context.Context, request Request, _ Permits) (Response, error) { return do(ctx, request) })
}

// permitted is typed for functions that have dangerous steps.
func permitted[Request, Response protoadapt.MessageV1](do func(context.Context, Request, Permits) (Response, error)) operation {
	return func(ctx context.Context, message proto.Message, permits Permits) (proto.Message, error) {
		request, ok := protoadapt.MessageV1Of(message).(Request)
		if !ok {
			var want Request
			return nil, fmt.Errorf("request is a %T and not a %T", message, want)
		}
		response, err := do(ctx, request, permits)
		if err != nil {
			return nil, err
		}
		return protoadapt.MessageV2Of(response), nil
	}
}
