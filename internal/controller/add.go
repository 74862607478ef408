package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// reportingController is whom Events name as their source.
const reportingController = "pipeguard"

// Parts are what the manager runs, for those who tell them something or ask them.
type Parts struct {
	// Activator takes over the cluster's policies.
	Activator *Activator
	// Replicas counts who decides by what.
	Replicas *Replicas
	sweeper  *sweeper
}

// Refresh has all statuses looked at soon, because Options.Violations would answer otherwise than before. It does not wait.
func (p *Parts) Refresh() { p.sweeper.refresh() }

// Add gives a manager the parts: on every replica the Activator and the report of this replica, on the leader the
// statuses, Events and metrics of policy objects. The manager's scheme knows client-go's types and v1alpha1, its cache was
// made with LeaseCache, and the account that it runs with may do what the table in this package's doc.go lists.
func Add(mgr manager.Manager, o Options) (*Parts, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("policy controllers: %w", err)
	}
	from := cached{mgr.GetCache()}
	metrics := NewMetrics(o.Registerer, o.Now)
	activator := newActivator(o, from)
	replicas := &Replicas{
		namespace: o.Namespace, pod: o.PodName, leases: mgr.GetClient(), cached: mgr.GetCache(), live: mgr.GetAPIReader(),
		outcome: activator.Latest, wake: activator.Subscribe(), log: o.Log, now: o.Now,
	}
	sweep := &sweeper{
		objects: from, cache: mgr.GetCache(), outcome: activator.Subscribe(), count: replicas.Count, metrics: metrics, log: o.Log,
		changed: make(chan struct{}, 1), pipes: make(chan event.GenericEvent), modules: make(chan event.GenericEvent),
	}
	newWriter := func() *writer {
		return &writer{
			client: mgr.GetClient(), outcome: activator.Latest, count: replicas.Count, violations: o.Violations, bundles: o.Bundles,
			recorder: mgr.GetEventRecorder(reportingController), metrics: metrics, log: o.Log, now: o.Now, recalls: map[string]recall{},
		}
	}
	for _, r := range []manager.Runnable{activator, replicas, sweep} {
		if err := mgr.Add(r); err != nil {
			return nil, fmt.Errorf("policy controllers: %w", err)
		}
	}
	if err := addWriter(mgr, "pipepolicy", &v1alpha1.PipePolicy{}, sweep.pipes, newWriter().pipePolicies); err != nil {
		return nil, err
	}
	if err := addWriter(mgr, "policymodule", &v1alpha1.PolicyModule{}, sweep.modules, newWriter().policyModules); err != nil {
		return nil, err
	}
	return &Parts{Activator: activator, Replicas: replicas, sweeper: sweep}, nil
}

// addWriter makes a controller with one worker: a writer is the work of one goroutine.
func addWriter(mgr manager.Manager, name string, o client.Object, swept <-chan event.GenericEvent, r func(context.Context, reconcile.Request) (reconcile.Result, error)) error {
	several := true // managers in one process, in tests
	err := builder.ControllerManagedBy(mgr).Named(name).
		For(o, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Channel(swept, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, SkipNameValidation: &several}).
		Complete(reconcile.Func(r))
	if err != nil {
		return fmt.Errorf("policy controllers: %s: %w", name, err)
	}
	return nil
}
