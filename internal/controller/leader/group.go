package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// leaseDuration is how long other replicas leave a Lease alone that is not renewed.
	leaseDuration = 15 * time.Second
	// RenewDeadline is how long a term lasts after its last renewal. The rest of the lease's duration is for
	// requests that are on their way.
	RenewDeadline = 10 * time.Second
	// retryPeriod is the time between two renewals, and between two attempts to lead.
	retryPeriod = 2 * time.Second
	// releaseTimeout bounds giving up the Lease at the end of a term. Without it, the Lease expires.
	releaseTimeout = 5 * time.Second
)

// Part is work for the leader alone. Start works until ctx is done; after it has returned it can be called again.
type Part interface {
	Start(ctx context.Context) error
}

// Options configure a Group.
type Options struct {
	// Lock is the Lease that the replicas compete for. Nil means that this replica always leads.
	Lock resourcelock.Interface
	// Name is the label of the metrics that client-go keeps of the Lease.
	Name string
	// Log receives diagnostics. Default none.
	Log *zap.Logger
}

// Group runs its parts while this replica leads. The end of a term, whatever its reason, stops the parts and nothing
// else: the replica then competes for the next term.
type Group struct {
	options Options
	parts   []Part
}

// New returns a Group without parts.
func New(o Options) *Group {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	return &Group{options: o}
}

// Add adds parts. It must not be called after Start.
func (g *Group) Add(parts ...Part) { g.parts = append(g.parts, parts...) }

// Start competes for the Lease and runs the parts in each term, until ctx is done. It returns when the parts have stopped
// and the Lease is given up. The error is nil unless the election cannot be configured.
func (g *Group) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		serve := g.term
		if g.options.Lock == nil {
			serve = g.run
		}
		switch err := serve(ctx); {
		case errors.Is(err, errMisconfigured):
			return err
		case err != nil && ctx.Err() == nil:
			g.options.Log.Error("the leader's work has stopped; this replica competes for the lead again", zap.Error(err))
		}
		periodic.Sleep(ctx, retryPeriod)
	}
	return nil
}

var (
	errMisconfigured = errors.New("configure the leader election")
	errLeaseLost     = errors.New("the Lease was not renewed in time")
)

// term competes for the Lease and runs the parts once for as long as it is held.
//
// The order at the end matters. client-go's elector would give up the Lease while the parts still run, so it is not
// asked to: the parts stop first, then the renewals, and then the Lease is given up.
func (g *Group) term(ctx context.Context) error {
	lock := &watchedLock{Interface: g.options.Lock}
	leads := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: g.options.Name, LeaseDuration: leaseDuration, RenewDeadline: RenewDeadline, RetryPeriod: retryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { leads <- ctx },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errMisconfigured, err)
	}
	campaign, withdraw := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), zapr.NewLogger(g.options.Log)))
	defer withdraw()
	ended := make(chan struct{})
	go func() { defer close(ended); elector.Run(campaign) }()

	var result error
	select {
	case <-ctx.Done():
	case <-ended:
	case held := <-leads:
		result = g.hold(ctx, held, lock)
	}
	withdraw()
	<-ended
	if lock.written.Load() {
		release(ctx, g.options.Lock, g.options.Log)
	}
	return result
}

// hold runs the parts until ctx is done, the elector gives up (held is done), or the last renewal is too old.
func (g *Group) hold(ctx, held context.Context, lock *watchedLock) error {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(held, func() { stop(errLeaseLost) })()
	defer lock.watch(func() { stop(errLeaseLost) })()
	g.options.Log.Info("this replica leads")
	err := g.run(working)
	if cause := context.Cause(working); errors.Is(cause, errLeaseLost) {
		err = errors.Join(cause, err)
	}
	return err
}

// run runs the parts until ctx is done or one of them fails, and returns when all have stopped.
func (g *Group) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range g.parts {
		group.Go(func() error { return p.Start(ctx) })
	}
	group.Go(func() error { <-ctx.Done(); return nil }) // the term lasts, also when every part has returned
	return group.Wait()
}
