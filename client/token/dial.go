package token

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Dialer opens a pipe. On Windows it is DialPipeContext of github.com/Microsoft/go-winio, which lets the server act with no
// right of the caller's.
type Dialer func(ctx context.Context, pipe string) (net.Conn, error)

// Dial returns a connection that sends the source's token with each call, for the generated stubs. The pipe is given by its
// full name, \\.\pipe\csi-proxy-GROUP-VERSION. It is opened with the first call, and again after the proxy was restarted.
//
// Options are added to those that Dial needs itself. They must not bring a token along, nor transport credentials.
func Dial(pipe string, source *Source, dial Dialer, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	own := []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a pipe is of this machine
		grpc.WithPerRPCCredentials(source.Credentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, pipe) }),
		grpc.WithAuthority("localhost"),
	}
	conn, err := grpc.NewClient("passthrough:///pipe", append(own, options...)...)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", pipe, err)
	}
	return conn, nil
}
