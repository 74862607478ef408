package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// Options are the parts of a Server. Those without a word on their absence are required.
type Options struct {
	// APIs are the group-versions to serve, one pipe each. There may be none if there is something in Forward.
	APIs []*apiserver.API
	// Handle carries out a call that has been admitted. Without APIs it may be missing.
	Handle apiserver.Handler
	// Pass passes on a call of an API's pipe whose method is in none of APIs, if the access list names that method;
	// nil means that there are no such methods. See Forwarded.Serve.
	Pass func(ctx context.Context, gv apiserver.GroupVersion, fullMethod string, stream grpc.ServerStream) error
	// Forward are pipes of other gRPC servers; it may be empty.
	Forward []Forwarded
	// Listen opens the pipe of a name such as csi-proxy-filesystem-v1.
	Listen func(name string) (net.Listener, error)
	// Peers identifies callers.
	Peers peer.Resolver
	// Rules returns the rules for the calls of a pipe, named as in access.Call. It is called once for each call, and may
	// return others each time; nil denies all.
	Rules func(group, version string) *Rules
	// Tokens looks at the tokens of a pipe's callers, by the pipe's name; nil looks at none.
	Tokens func(pipe string) token.Guard
	// Roles asks the cluster's roles about a pipe's callers, by the pipe's name; nil asks for none.
	Roles func(pipe string) Roles
	// Audit takes the records.
	Audit audit.Writer
	// Overdue returns the number of the last record that the log should have removed by now, and keeps since an operation under way began
	// before; 0 if there is none. Calls that are passed on and began up to there are ended: they alone go on for as long as they like. Nil ends none.
	Overdue func() uint64
	// Limits bound what callers can use up; the zero value means the defaults.
	Limits Limits
	// Log takes diagnostics; nil means none.
	Log *zap.Logger
	// Registerer takes the metrics; nil means that they are not exported.
	Registerer prometheus.Registerer
	// Node stands in every record; it may be empty.
	Node string
}

// Server serves APIs on their pipes.
type Server struct {
	shared

	listen func(name string) (net.Listener, error)
	log    *zap.Logger
	pipes  []*pipe
	limits Limits
}

// New checks the options and reports every fault at once.
func New(o Options) (*Server, error) {
	var errs []error
	require := func(ok bool, name string) {
		if !ok {
			errs = append(errs, fmt.Errorf("proxy.Options.%s is missing", name))
		}
	}
	require(len(o.APIs) > 0 || len(o.Forward) > 0, "APIs")
	require(o.Handle != nil || len(o.APIs) == 0 && len(o.Forward) > 0, "Handle")
	require(o.Listen != nil, "Listen")
	require(o.Peers != nil, "Peers")
	require(o.Rules != nil, "Rules")
	require(o.Audit != nil, "Audit")
	var err error
	if o.Limits, err = o.Limits.withDefaults(); err != nil {
		errs = append(errs, err)
	}
	names := map[string]bool{}
	for _, api := range o.APIs {
		name := api.GroupVersion().Pipe()
		if names[name] {
			errs = append(errs, fmt.Errorf("proxy.Options.APIs has %s twice", name))
		}
		names[name] = true
	}
	errs = append(errs, checkForward(o.Forward))
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	all := shared{
		metrics: m, audit: newAuditWriter(o.Audit, m, o.Log), queue: o.Limits.queue(), limiter: acl.NewLimiter(0),
		shares: newShares(o.Limits.perOwner()), arrivals: newArrivalLimiter(), pending: newPendingConns(),
	}
	if err := errors.Join(registerQueue(o.Registerer, all.queue), registerUnwritten(o.Registerer, all.audit.refusals)); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	s := &Server{shared: all, listen: o.Listen, log: o.Log, limits: o.Limits}
	for _, api := range o.APIs {
		s.pipes = append(s.pipes, newPipe(api, o, all))
	}
	for _, f := range o.Forward {
		s.pipes = append(s.pipes, newForwarded(f, o, all))
	}
	return s, nil
}

// Run opens all pipes or none, serves until ctx is done, and then stops: calls in flight finish within a bound.
// It returns nil after an ordered stop. If one pipe fails, all stop. A Server runs once.
func (s *Server) Run(ctx context.Context) error {
	listeners, err := s.open()
	if err != nil {
		return err
	}
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx)) // also while calls in flight are waited for
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(watching) })
	watcher.Go(func() { s.audit.watch(watching) })
	defer watcher.Wait()
	defer unwatch()
	group, running := errgroup.WithContext(ctx)
	for i, p := range s.pipes {
		group.Go(func() error { return p.serve(listeners[i]) })
		s.log.Info("pipe served", zap.String(logkeys.Pipe, p.name), zap.Stringer(logkeys.Address, listeners[i].Addr()))
	}
	<-running.Done()
	stopped := s.stop()
	if errors.Is(stopped, errStillRunning) { // gRPC waits for such calls for ever; the end of the process does not
		return stopped
	}
	return errors.Join(group.Wait(), stopped)
}

func (s *Server) open() ([]net.Listener, error) {
	var listeners []net.Listener
	failed := map[string][]string{} // pipes by error: a fault of their directory is reported once, and not for each pipe
	var faults []error
	for _, p := range s.pipes {
		l, err := s.listen(p.name)
		if err != nil {
			if failed[err.Error()] == nil {
				faults = append(faults, err)
			}
			failed[err.Error()] = append(failed[err.Error()], p.name)
			continue
		}
		listeners = append(listeners, l)
	}
	if len(faults) == 0 {
		return listeners, nil
	}
	var errs []error
	for _, err := range faults {
		names := failed[err.Error()]
		what := "pipe " + names[0]
		if len(names) > 1 {
			what = fmt.Sprintf("%d pipes, %s and others", len(names), names[0])
		}
		errs = append(errs, fmt.Errorf("open %s: %w", what, err))
	}
	for _, l := range listeners {
		errs = append(errs, l.Close())
	}
	return nil, errors.Join(errs...)
}

func (s *Server) stop() error {
	var group sync.WaitGroup
	errs := make([]error, len(s.pipes)+1)
	for i, p := range s.pipes {
		group.Go(func() { errs[i] = p.stop() })
	}
	group.Wait()
	errs[len(s.pipes)] = s.audit.settle(context.Background())
	if err := s.audit.summarise(context.Background(), true); err != nil {
		s.log.Error("refusals have no record", zap.Uint64(logkeys.Unwritten, s.audit.refusals.waiting()), zap.Error(err))
	}
	return errors.Join(errs...)
}

// Unwritten is how many requests and connections have ended without a record in the log. It is final when Run has returned.
func (s *Server) Unwritten() uint64 { return s.audit.unwritten() }
