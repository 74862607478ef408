package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/order"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// pipe is one served group-version: a gRPC server on one listener.
type pipe struct {
	shared

	name       string // csi-proxy-filesystem-v1
	gv         apiserver.GroupVersion
	service    string            // v1.Filesystem
	methods    map[string]string // full method -> hub operation
	where      *audit.Where      // of all records; nil if the node has no name
	limits     Limits
	rules      func(group, version string) *Rules
	log        *zap.Logger
	conns      *connLimiter
	turnedAway *alike // connections that were turned away at their accept
	server     *grpc.Server
	overdue    func() uint64   // see Options
	tokens     *token.Guard    // nil looks at none
	roles      Roles           // nil asks for none
	running    context.Context // ends operations that outlive their callers, when the pipe is stopped by force
	abandon    context.CancelFunc
	pass       serveFunc // serves methods that are not in methods; nil if there are none

	stopping   atomic.Bool
	background sync.WaitGroup // what runs beside gRPC's own goroutines
}

// shared is what all pipes of a server have in common.
type shared struct {
	metrics  *metrics
	audit    *auditWriter
	queue    *order.Queue
	limiter  *acl.Limiter
	shares   *shares
	arrivals *arrivalLimiter
	pending  *pendingConns
}

func newPipe(api *apiserver.API, o Options, all shared) *pipe {
	gv := api.GroupVersion()
	p := basePipe(gv.Pipe(), gv, o, all)
	if o.Pass != nil {
		p.pass = func(ctx context.Context, fullMethod string, stream grpc.ServerStream) error {
			return o.Pass(ctx, gv, fullMethod, stream)
		}
	}
	for _, method := range api.Methods() {
		p.methods[method.FullMethod] = method.Operation.Name
	}
	desc := api.Desc(func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
		return p.handle(ctx, call, func(ctx context.Context, r *request) (proto.Message, error) { return p.operate(ctx, r, o.Handle) })
	}, p.onBad)
	p.service = desc.ServiceName
	for i := range desc.Methods {
		desc.Methods[i].Handler = p.guard(desc.Methods[i].Handler)
	}
	p.server = p.newServer(o)
	p.server.RegisterService(desc, nil)
	return p
}

// basePipe is a pipe without its methods and its server.
func basePipe(name string, gv apiserver.GroupVersion, o Options, all shared) *pipe {
	p := &pipe{
		shared: all, name: name, gv: gv, methods: map[string]string{}, limits: o.Limits, rules: o.Rules,
		log: o.Log.With(zap.String(logkeys.Pipe, name)), conns: newConnLimiter(o.Limits, all.pending),
	}
	if p.overdue = o.Overdue; p.overdue == nil {
		p.overdue = func() uint64 { return 0 }
	}
	if o.Tokens != nil {
		guard := o.Tokens(name)
		p.tokens = &guard
	}
	if o.Roles != nil {
		p.roles = o.Roles(name)
	}
	if o.Node != "" {
		p.where = &audit.Where{Node: o.Node}
	}
	p.turnedAway = p.turnedAwayRecord()
	p.running, p.abandon = context.WithCancel(context.Background())
	all.metrics.pipe(p.name)
	return p
}

func (p *pipe) newServer(o Options, more ...grpc.ServerOption) *grpc.Server {
	options := append(o.Limits.grpcOptions(),
		grpc.Creds(handshake{peers: o.Peers, timeout: o.Limits.PeerTimeout}),
		grpc.InTapHandle(p.tap),
		grpc.StatsHandler(hooks{p}),
		grpc.UnknownServiceHandler(p.unknown),
		grpc.ForceServerCodecV2(raw.Codec{}),
	)
	return grpc.NewServer(append(options, more...)...)
}

// label returns type, service and method for a metric. All methods that are not served share one label, or callers could make series
// at will; one that is passed on has its own name if the access list has it too.
func (p *pipe) label(fullMethod string) [3]string {
	service, method := splitMethod(fullMethod)
	switch {
	case p.methods[fullMethod] != "":
		return [3]string{"unary", service, method}
	case p.isForwarded() && !p.isNamed(fullMethod):
		return [3]string{"bidi_stream", "forwarded", "forwarded"}
	case p.pass == nil || !p.isNamed(fullMethod):
		return [3]string{"unary", "unknown", "unknown"}
	}
	return [3]string{"bidi_stream", service, method}
}

// serve blocks until the pipe is stopped or its listener fails.
func (p *pipe) serve(l net.Listener) error {
	err := p.server.Serve(&listener{Listener: l, pipe: p})
	// A stop may come before gRPC has begun; it then closes the listener and says so.
	if err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serve pipe %s: %w", p.name, err)
	}
	return nil
}

// stop takes no more connections, waits for calls in flight, cancels those that take longer than the bound, and returns
// when all records are written. The error says that calls did not end even when cancelled.
func (p *pipe) stop() error {
	p.stopping.Store(true)
	p.leave()
	stopped := make(chan struct{})
	go p.drain(stopped)
	go func() {
		defer close(stopped)
		p.server.GracefulStop()
		p.background.Wait()
	}()
	if waitFor(stopped, p.limits.StopTimeout) {
		p.abandon()
		return nil
	}
	p.log.Warn("calls are cancelled: they did not end in time")
	p.abandon()
	go p.server.Stop()
	if waitFor(stopped, p.limits.StopTimeout) {
		return nil
	}
	return fmt.Errorf("pipe %s: %w within %v of being cancelled; their terminal records are missing", p.name, errStillRunning, p.limits.StopTimeout)
}

// leave ends, when the pipe stops, connections on which nothing can be in flight, those of strangers, whose calls would be denied, and
// requests that are not whole.
func (p *pipe) leave() {
	for _, c := range p.conns.stop() {
		switch {
		case !c.isEstablished():
			c.giveUp(audit.ResultIdle, errStopping.Error())
		case c.isStranger():
			_ = c.Close()
		default:
			c.cutOff()
		}
	}
}

// drain ends the connections on which no call is in progress, once their clients have had time to take leave. gRPC would wait for
// each of them, and a client may be silent on purpose.
func (p *pipe) drain(stopped <-chan struct{}) {
	if waitFor(stopped, drainTime) {
		return
	}
	for quiet := map[*conn]bool{}; ; {
		seen := map[*conn]bool{}
		for _, c := range p.conns.stop() {
			c.cutOff()
			if c.busy.Load() > 0 {
				continue
			}
			if seen[c] = true; quiet[c] { // its last answer has been sent since
				_ = c.Close()
			}
		}
		quiet = seen
		if waitFor(stopped, quietTime) {
			return
		}
	}
}

// cutOff ends the requests that are not whole.
func (c *conn) cutOff() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for s := range c.streams {
		s.cutOff(errUnfinished)
	}
}

// errStillRunning means that handlers go on although their calls were cancelled.
var errStillRunning = errors.New("calls did not end")

func waitFor(done <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func (c *conn) isEstablished() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.established
}

func (p *pipe) logPeerClose(c *conn, err error) {
	p.log.Warn("release of the caller's process", zap.String(logkeys.Connection, c.id), zap.Error(err))
}
