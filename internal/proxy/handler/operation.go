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

// on is typed for functions that act on one object, which a field of the request names. parse refuses what names none.
func on[Request, Response protoadapt.MessageV1, Field, Object any](field func(Request) Field, parse func(Field) (Object, error),
	do func(context.Context, Object, Request) (Response, error)) operation {
	return permitted(field, parse, func(ctx context.Context, object Object, request Request, _ Permits) (Response, error) {
		return do(ctx, object, request)
	})
}

// permitted is on for functions that have dangerous steps.
func permitted[Request, Response protoadapt.MessageV1, Field, Object any](field func(Request) Field, parse func(Field) (Object, error),
	do func(context.Context, Object, Request, Permits) (Response, error)) operation {
	return called(func(ctx context.Context, request Request, call *apiserver.Call) (response Response, err error) {
		object, err := parse(field(request))
		if err != nil {
			return response, err
		}
		return do(ctx, object, request, call.Permits)
	})
}

// required is parse with an error text of its own for an empty field: those of the old servers differ from one operation to the next.
func required[T any](empty string, parse func(string) (T, error)) func(string) (T, error) {
	return func(field string) (T, error) {
		if field == "" {
			var none T
			return none, &InvalidError{empty}
		}
		return parse(field)
	}
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
