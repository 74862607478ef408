package forward

import (
	"cmp"
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// Serve passes on one call of any kind: messages, metadata, deadline, trailers and status. It returns when the server has
// ended the call, with the server's status. A caller that leaves ends it at the server too. Neither side is read faster
// than the other takes it. The messages of stream must be those of package raw.
func (l *Link) Serve(ctx context.Context, fullMethod string, stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(ctx)
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, passable(md)))
	defer cancel()
	options := []grpc.CallOption{grpc.ForceCodecV2(raw.Codec{})}
	if s := subtype(md); s != "" {
		options = append(options, grpc.CallContentSubtype(s))
	}
	server, err := l.client.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, fullMethod, options...)
	if err != nil {
		return err
	}
	// It reads until the caller has no more to say or the call is over, which gRPC tells it only after Serve has returned.
	callerEnded := make(chan error, 1)
	l.pumps.Go(func() {
		err := toServer(stream, server)
		callerEnded <- err
		if err != nil {
			cancel()
		}
	})
	err = toCaller(server, stream)
	if status.Code(err) != codes.Canceled {
		return err
	}
	// The server did not end it. If it was the caller, or what it sent, that is the better reason.
	if gone := stream.Context(); gone.Err() != nil {
		if reason := context.Cause(gone); !errors.Is(reason, gone.Err()) { // it was ended here, and the caller may be silent for ever
			return reason
		}
		return cmp.Or(<-callerEnded, err)
	}
	select {
	case reason := <-callerEnded:
		return cmp.Or(reason, err)
	default:
		return err
	}
}

// toServer passes on what the caller sends. If the server takes no more, it has ended the call, and toCaller knows why.
func toServer(from grpc.ServerStream, to grpc.ClientStream) error {
	for {
		var m raw.Message
		err := from.RecvMsg(&m)
		if errors.Is(err, io.EOF) {
			return to.CloseSend()
		}
		if err != nil {
			return err
		}
		if err := to.SendMsg(&m); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// toCaller passes on what the server sends, its end included.
func toCaller(from grpc.ClientStream, to grpc.ServerStream) error {
	header, err := from.Header()
	if err == nil && header != nil { // nil means that the server answered with an end alone
		if err := to.SendHeader(passable(header)); err != nil {
			return err
		}
	}
	for {
		var m raw.Message
		err := from.RecvMsg(&m)
		if err != nil {
			to.SetTrailer(passable(from.Trailer()))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := to.SendMsg(&m); err != nil {
			return err
		}
	}
}
