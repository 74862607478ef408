package controller

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pipeguard/pipeguard/internal/controller/leader"
)

// reportingController is the source of Events.
const reportingController = "pipeguard"

// Parts are what the manager runs, for callers that notify or query them.
type Parts struct {
	// Activator takes over the cluster's policies.
	Activator *Activator
	// Replicas counts the replicas by the policies that they enforce.
	Replicas *Replicas
	sweeper  *sweeper
}

// Refresh asks for a check of all statuses soon, because Options.Violations or Options.OtherModes have changed. It does not wait.
func (p *Parts) Refresh() { p.sweeper.refresh() }

// Add gives a manager the Activator and the report of this replica, and the leader the statuses, Events and metrics of
// policy objects. The manager's scheme knows client-go's types and v1alpha1, its cache was made with CacheOf, and the
// account that it runs with may do what the table in this package's doc.go lists.
func Add(mgr manager.Manager, leads *leader.Group, o Options) (*Parts, error) {
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
		changed: make(chan struct{}, 1),
	}
	newWriter := func() *writer {
		return &writer{
			client: mgr.GetClient(), outcome: activator.Latest, count: replicas.Count, violations: o.Violations, otherModes: o.OtherModes, bundles: o.Bundles, floor: o.Floor,
			recorder: mgr.GetEventRecorder(reportingController), metrics: metrics, log: o.Log, now: o.Now, recalls: map[string]reportedEvents{},
		}
	}
	for _, r := range []manager.Runnable{activator, replicas} {
		if err := mgr.Add(r); err != nil {
			return nil, fmt.Errorf("policy controllers: %w", err)
		}
	}
	leads.Add(&statuses{mgr, sweep, newWriter, metrics})
	return &Parts{Activator: activator, Replicas: replicas, sweeper: sweep}, nil
}
