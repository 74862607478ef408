package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// Options are how the runtime is asked.
type Options struct {
	// Dial opens a connection to the runtime's endpoint; Dialer makes one.
	Dial func(context.Context) (net.Conn, error)
	// Timeout is how long the runtime may take for one list, 5 s if not set.
	Timeout time.Duration
	// Poll is how often it is asked without any news, 30 s if not set. What is missed in between costs a question at the next
	// connection, and nothing else.
	Poll time.Duration
	// Log takes diagnostics; nil means none.
	Log *zap.Logger
}

const (
	defaultTimeout = 5 * time.Second
	defaultPoll    = 30 * time.Second
	maxMessage     = 16 << 20 // bytes of one answer, as the kubelet has it
	reconnect      = time.Second
	connectTimeout = 5 * time.Second
)

// Client knows the containers of a runtime. It is a peer.Containers.
type Client struct {
	conn    *grpc.ClientConn
	runtime runtimeapi.RuntimeServiceClient
	options Options

	ctx    context.Context // of the questions themselves, which may outlive the callers that wait for the answer
	cancel context.CancelFunc
	asking sync.WaitGroup

	known atomic.Pointer[known]
	lists counts

	mu            sync.Mutex // guards the fields below
	running, next *question
	pausing       bool // after a question, so that the next one waits
	closed        bool
	said          string // what was logged last
}

// known is one good answer.
type known struct {
	list   peer.List
	faults int
}

var _ peer.Containers = (*Client)(nil)

// New asks nothing yet.
func New(o Options) (*Client, error) {
	if o.Dial == nil {
		return nil, errors.New("container runtime: no way to connect to it")
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.Poll <= 0 {
		o.Poll = defaultPoll
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	conn, err := grpc.NewClient("passthrough:///runtime",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return o.Dial(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // a pipe of this machine, whose server Dial has named
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithNoProxy(), grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnect / 10, Multiplier: 2, Jitter: 0.2, MaxDelay: reconnect},
			MinConnectTimeout: connectTimeout,
		}))
	if err != nil {
		return nil, fmt.Errorf("container runtime: %w", err)
	}
	c := &Client{conn: conn, runtime: runtimeapi.NewRuntimeServiceClient(conn), options: o}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends all questions. Run is to have returned.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.asking.Wait()
	return c.conn.Close()
}

// Known implements peer.Containers.
func (c *Client) Known() peer.List {
	if k := c.known.Load(); k != nil {
		return k.list
	}
	return peer.List{}
}
