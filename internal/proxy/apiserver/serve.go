package apiserver

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Desc returns the gRPC service of this version; every request is converted and passed to h.
//
// A request that cannot be decoded or converted is reported to onBad, if that is not nil, and ends with an error
// without reaching h. What gRPC refuses before it calls a service (too large, unknown method, bad compression)
// does not come here. Register the service with a nil implementation.
func (a *API) Desc(h Handler, onBad func(ctx context.Context, fullMethod string, err error)) *grpc.ServiceDesc {
	if onBad == nil {
		onBad = func(context.Context, string, error) {}
	}
	desc := &grpc.ServiceDesc{
		ServiceName: string(a.service.FullName()),
		HandlerType: (*any)(nil),
		Metadata:    a.service.ParentFile().Path(),
	}
	for _, m := range a.methods {
		s := server{method: m, handle: h, onBad: onBad}
		desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m.Name, Handler: s.serve})
	}
	return desc
}

// server answers one method.
type server struct {
	method Method
	handle Handler
	onBad  func(ctx context.Context, fullMethod string, err error)
}

// serve has the signature that gRPC calls.
func (s server) serve(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) { //nolint:revive // the order is gRPC's
	request := s.method.NewRequest()
	if err := decode(request); err != nil {
		s.onBad(ctx, s.method.FullMethod, err)
		return nil, err
	}
	if interceptor == nil {
		return s.run(ctx, request)
	}
	return interceptor(ctx, request, &grpc.UnaryServerInfo{Server: srv, FullMethod: s.method.FullMethod}, s.run)
}

// run converts the request to the hub, has it carried out, and converts the response back.
func (s server) run(ctx context.Context, request any) (any, error) {
	served, ok := request.(proto.Message)
	if !ok || served.ProtoReflect().Descriptor() != s.method.served.request.Descriptor() {
		return nil, status.Errorf(codes.Internal, "%s was given a %T for its request", s.method.FullMethod, request)
	}
	call, err := s.method.Call(served)
	if err != nil {
		err = status.Error(codes.InvalidArgument, err.Error())
		s.onBad(ctx, s.method.FullMethod, err)
		return nil, err
	}
	response, err := s.handle(ctx, call)
	if err != nil {
		return nil, s.method.prefixed(err)
	}
	return s.method.respond(response)
}

// Call converts a request of this version to a call in the words of the hub. Paths get their canonical spelling in both, so
// that what is judged, recorded, carried out and passed on is one text. The error is about the request:
// a text where a number belongs.
func (m Method) Call(request proto.Message) (*Call, error) {
	request = canonical(request, m.paths)
	hub := m.hub.request.New()
	if err := m.toHub.apply(hub, request.ProtoReflect()); err != nil {
		return nil, err
	}
	return &Call{
		Operation:  m.Operation,
		Version:    m.version,
		Method:     m.Name,
		FullMethod: m.FullMethod,
		Request:    hub.Interface(),
		Served:     request,
	}, nil
}

// respond converts a response of the hub to this version. One that is of this version already goes out as it is:
// a handler that has asked a server of the same version has nothing else, and what it has needs no change.
// A response that is missing or of another type is the handler's fault; taken for an empty one, it would tell the
// client that all went well.
func (m Method) respond(response proto.Message) (proto.Message, error) {
	if response == nil || !response.ProtoReflect().IsValid() {
		return nil, status.Errorf(codes.Internal, "%s was answered with a %T", m.FullMethod, response)
	}
	switch response.ProtoReflect().Descriptor() {
	case m.served.response.Descriptor():
		return response, nil
	case m.hub.response.Descriptor():
	default:
		return nil, status.Errorf(codes.Internal, "%s was answered with a %T", m.FullMethod, response)
	}
	served := m.served.response.New()
	if err := m.fromHub.apply(served, response.ProtoReflect()); err != nil {
		return nil, status.Errorf(codes.Internal, "convert the response of %s: %v", m.FullMethod, err)
	}
	return served.Interface(), nil
}

// prefixed puts the prefix of the old servers before an error, and keeps its code.
func (m Method) prefixed(err error) error {
	if m.errorPrefix == "" {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	p := st.Proto()
	if !strings.HasPrefix(p.GetMessage(), m.errorPrefix) { // a server of the same version has put them there already
		p.Message = m.errorPrefix + p.GetMessage()
	}
	return status.ErrorProto(p)
}
