package apiserver

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

func protoString(s string) protoreflect.Value { return protoreflect.ValueOfString(s) }

type methodHandler = func(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error)

func handlerOf(t testing.TB, desc *grpc.ServiceDesc, method string) methodHandler {
	t.Helper()
	for _, m := range desc.Methods {
		if m.MethodName == method {
			return m.Handler
		}
	}
	t.Fatalf("%s has no method %s", desc.ServiceName, method)
	return nil
}

// wireTarget is a method with its handler, for calls past the transport.
type wireTarget struct {
	method  Method
	handler methodHandler
}

// wireTargets are all methods, with handlers that record what comes and answer with answer.
func wireTargets(t testing.TB, answer func(m Method, c *Call) proto.Message, onBad func()) []wireTarget {
	var targets []wireTarget
	for _, a := range loadAll(t) {
		for _, m := range a.Methods() {
			desc := a.Desc(func(_ context.Context, c *Call) (proto.Message, error) { return answer(m, c), nil },
				func(context.Context, string, error) { onBad() })
			targets = append(targets, wireTarget{m, handlerOf(t, desc, m.Name)})
		}
	}
	return targets
}

func FuzzArbitraryBytesNeverPanic(f *testing.F) {
	reached, bad, params := 0, 0, json.RawMessage(nil)
	targets := wireTargets(f, func(m Method, c *Call) proto.Message {
		reached++
		params, _ = Params(c)
		Targets(c)
		return m.hub.response.New().Interface()
	}, func() { bad++ })
	for i, target := range targets {
		request := target.method.NewRequest()
		fill(request)
		wire, err := proto.Marshal(request)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint(i), wire)
	}
	f.Add(uint(0), []byte{0x0a, 1, 0xff})
	f.Fuzz(func(t *testing.T, i uint, wire []byte) {
		reached, bad = 0, 0
		target := targets[i%uint(len(targets))]
		response, err := target.handler(nil, t.Context(), func(v any) error { return proto.Unmarshal(wire, v.(proto.Message)) }, nil)
		if (err == nil) != (reached == 1) || (err != nil) != (bad == 1) || (response == nil) != (err != nil) {
			t.Errorf("%s: response %v, error %v, reached %d, bad %d", target.method.FullMethod, response, err, reached, bad)
		}
		if reached == 1 && !validJSON(params) {
			t.Errorf("%s: params %s", target.method.FullMethod, params)
		}
	})
}

func TestArbitraryMessagesNeverPanic(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	reached, bad := 0, 0
	targets := wireTargets(t, func(m Method, c *Call) proto.Message {
		reached++
		params, _ := Params(c)
		if !validJSON(params) {
			t.Errorf("%s: params %s", c.FullMethod, params)
		}
		for _, target := range Targets(c) {
			if len(target.Value) > maxText+32 {
				t.Errorf("%s: a target has %d bytes", c.FullMethod, len(target.Value))
			}
		}
		response := m.hub.response.New().Interface()
		scramble(response, r)
		return response
	}, func() { bad++ })
	for range 200 {
		for _, target := range targets {
			reached, bad = 0, 0
			_, err := target.handler(nil, t.Context(), func(v any) error { scramble(v.(proto.Message), r); return nil }, nil)
			if (err == nil) != (reached == 1) || (err != nil) != (bad == 1) {
				t.Fatalf("%s: error %v, reached %d, bad %d", target.method.FullMethod, err, reached, bad)
			}
		}
	}
}
