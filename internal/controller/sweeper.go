package controller

import (
	"context"
	"maps"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// gather is how long the sweeper waits after a change: the replicas take it over one after the other, and a status
	// that is written once is better than one that is written for each.
	gather = 500 * time.Millisecond
	// sweepEvery is how often it comes without a reason: replicas die without a word, scans end, statuses get edited.
	sweepEvery = 30 * time.Second
)

// sweeper has every policy object reconciled when something changed that all statuses contain: the outcome
// of an attempt, or what the replicas report. It runs on the leader.
type sweeper struct {
	objects objects
	cache   cache.Cache // of Leases
	outcome <-chan struct{}
	count   func(context.Context) (ReplicaCount, error)
	metrics *Metrics
	log     *zap.Logger

	changed        chan struct{}
	pipes, modules chan event.GenericEvent // of the current term
}

// refresh asks for a sweep. It does not wait.
func (s *sweeper) refresh() { periodic.Signal(s.changed) }

// Start sweeps until ctx is done.
func (s *sweeper) Start(ctx context.Context) error {
	if err := notify(ctx, s.cache, &coordinationv1.Lease{}, reports, func(client.Object) { s.refresh() }); err != nil {
		return unlessDone(ctx, err)
	}
	s.run(ctx)
	return nil
}

func (s *sweeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("statuses of policy objects not checked", zap.Error(err)) // the next sweep tries again
		}
		tick := time.NewTimer(sweepEvery)
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-s.outcome:
			s.gather(ctx)
		case <-s.changed:
			s.gather(ctx)
		}
		tick.Stop()
	}
}

// gather waits for further changes, and takes their signals together.
func (s *sweeper) gather(ctx context.Context) {
	periodic.Sleep(ctx, gather)
	for _, c := range []<-chan struct{}{s.outcome, s.changed} {
		select {
		case <-c:
		default:
		}
	}
}

// sweep reconciles each object.
func (s *sweeper) sweep(ctx context.Context) error {
	c, err := s.count(ctx)
	if err != nil {
		return err
	}
	s.metrics.counted(c)
	all, err := s.objects.list(ctx)
	if err != nil {
		return err
	}
	for i := range all.pipes {
		enqueue(ctx, s.pipes, &v1alpha1.PipePolicy{ObjectMeta: *all.pipes[i].ObjectMeta.DeepCopy()})
	}
	for i := range all.modules {
		enqueue(ctx, s.modules, &v1alpha1.PolicyModule{ObjectMeta: *all.modules[i].ObjectMeta.DeepCopy()})
	}
	return nil
}

func enqueue(ctx context.Context, c chan<- event.GenericEvent, o client.Object) {
	select {
	case c <- event.GenericEvent{Object: o}:
	case <-ctx.Done():
	}
}

// reports reports whether a Lease tells something new, beside that its replica is alive.
func reports(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() || !maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
		(before.GetDeletionTimestamp() == nil) != (after.GetDeletionTimestamp() == nil)
}
