package forward

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Bounds of a connection to a server.
const (
	// connectTimeout is the default of Options.ConnectTimeout.
	connectTimeout = 5 * time.Second
	// retryFirst and retryMost are how long a server that did not answer is left alone. Calls in the meantime fail at once.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second
	// maxMessage is the largest response in bytes: what gRPC receives unless told otherwise.
	maxMessage = 4 << 20
	// window is how many bytes the server may send ahead of what was asked for, the least that HTTP/2 has.
	window = 64<<10 - 1
	// pumpTimeout is how long Close waits for calls that have ended to be let go of.
	pumpTimeout = 5 * time.Second
)

// Link is a connection to the server of one pipe. It is opened when it is first used, and again when it was lost.
type Link struct {
	dialer *dialer
	client *grpc.ClientConn
	pumps  sync.WaitGroup // what still reads from callers
	close  func() error
}

// NewLink opens nothing yet. The error is about the names in the target.
func NewLink(t Target, o Options) (*Link, error) {
	d, err := newDialer(t, o)
	if err != nil {
		return nil, err
	}
	if o.ConnectTimeout == 0 {
		o.ConnectTimeout = connectTimeout
	}
	client, err := grpc.NewClient("passthrough:///"+t.Pipe,
		grpc.WithContextDialer(d.dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the kernel has said who is at the other end
		grpc.WithAuthority("localhost"),                          // some servers refuse names that no URL could have
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(), // a call that may have run is not repeated
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: retryFirst, Multiplier: 2, MaxDelay: retryMost},
			MinConnectTimeout: o.ConnectTimeout,
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithStaticStreamWindowSize(window), // else they grow to megabytes for each call
		grpc.WithStaticConnWindowSize(window),
	)
	if err != nil {
		return nil, fmt.Errorf("server of pipe %s: %w", t.Pipe, err)
	}
	l := &Link{dialer: d, client: client}
	l.close = sync.OnceValue(l.end)
	return l, nil
}

// Ready returns nil if the server answers, and why not if it does not by the end of ctx.
func (l *Link) Ready(ctx context.Context) error {
	for {
		state := l.client.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.TransientFailure:
			return status.Error(codes.Unavailable, l.dialer.reason())
		case connectivity.Idle:
			l.client.Connect()
		}
		if !l.client.WaitForStateChange(ctx, state) {
			return fmt.Errorf("the server of pipe %s does not answer: %w", l.dialer.Pipe, ctx.Err())
		}
	}
}

// Close ends the connection and the calls that are on it. It comes after the server that the calls come from has stopped.
func (l *Link) Close() error { return l.close() }

func (l *Link) end() error {
	err := l.client.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.pumps.Wait()
	}()
	timer := time.NewTimer(pumpTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C: // the server that they read from has not stopped; the process is about to
	}
	return err
}
