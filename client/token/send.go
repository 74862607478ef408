package token

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const header = "authorization"

// Credentials returns what [grpc.WithPerRPCCredentials] takes. Other interceptors of the client do not see the token.
//
// A pipe has no TLS, and these credentials do not ask for it: use them for connections that stay on the machine.
func (s *Source) Credentials() credentials.PerRPCCredentials { return perRPC{s} }

type perRPC struct{ source *Source }

// GetRequestMetadata implements credentials.PerRPCCredentials. Without a token the call fails with Unauthenticated and is not sent.
func (p perRPC) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	token, err := p.source.Token()
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	if token == "" {
		return nil, nil
	}
	return map[string]string{header: "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (perRPC) RequireTransportSecurity() bool { return false }

// UnaryClientInterceptor returns what [grpc.WithUnaryInterceptor] and [grpc.WithChainUnaryInterceptor] take. It replaces a
// token that the call's context holds already. Without a token the call fails with Unauthenticated and is not sent.
func (s *Source) UnaryClientInterceptor() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		ctx, err := s.attach(ctx)
		if err != nil {
			return err
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}

// StreamClientInterceptor is UnaryClientInterceptor for streams. The token is sent once, when a stream begins.
func (s *Source) StreamClientInterceptor() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := s.attach(ctx)
		if err != nil {
			return nil, err
		}
		return open(ctx, desc, conn, method, opts...)
	}
}

func (s *Source) attach(ctx context.Context) (context.Context, error) {
	token, err := s.Token()
	if err != nil {
		return nil, status.Error(codes.Unauthenticated, err.Error())
	}
	if token == "" {
		return ctx, nil
	}
	md, ok := metadata.FromOutgoingContext(ctx) // a copy
	if !ok {
		md = metadata.MD{}
	}
	md.Set(header, "Bearer "+token)
	return metadata.NewOutgoingContext(ctx, md), nil
}
