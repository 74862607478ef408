package controller

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// statuses writes the statuses of policy objects during one term of the leader after the other. What a term knows ends with
// it: another replica may have written in between.
type statuses struct {
	manager   manager.Manager
	sweeper   *sweeper
	newWriter func() *writer
	metrics   *Metrics
}

// Start writes until ctx is done.
func (s *statuses) Start(ctx context.Context) error {
	defer s.metrics.clear() // the leader alone has series
	s.sweeper.pipes, s.sweeper.modules = make(chan event.GenericEvent), make(chan event.GenericEvent)
	pipes, err := s.controller("pipepolicy", &v1alpha1.PipePolicy{}, s.sweeper.pipes, s.newWriter().pipePolicies)
	if err != nil {
		return err
	}
	modules, err := s.controller("policymodule", &v1alpha1.PolicyModule{}, s.sweeper.modules, s.newWriter().policyModules)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range []manager.Runnable{s.sweeper, pipes, modules} {
		group.Go(func() error { return r.Start(ctx) })
	}
	return group.Wait()
}

// controller makes a controller with one worker, for one term: a writer is the work of one goroutine, and a controller can
// be started once.
func (s *statuses) controller(name string, o client.Object, swept <-chan event.GenericEvent, r reconcile.Func) (controller.Controller, error) {
	several := true // one after the other, and managers in one process in tests
	options := controller.Options{Reconciler: r, MaxConcurrentReconciles: 1, SkipNameValidation: &several, Logger: s.manager.GetLogger()}
	options.DefaultFromConfig(s.manager.GetControllerOptions())
	c, err := controller.NewUnmanaged(name, options)
	if err != nil {
		return nil, fmt.Errorf("policy controllers: %s: %w", name, err)
	}
	changes := source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		return notify(ctx, s.manager.GetCache(), o, differs, func(o client.Object) {
			queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)})
		})
	})
	for _, from := range []source.Source{changes, source.Channel(swept, &handler.EnqueueRequestForObject{})} {
		if err := c.Watch(from); err != nil {
			return nil, fmt.Errorf("policy controllers: %s: %w", name, err)
		}
	}
	return c, nil
}
