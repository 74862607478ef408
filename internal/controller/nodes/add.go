package nodes

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/controller/leader"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Add gives the leader the part, and returns what a publisher asks of nodes (publish.Options.Unread). The manager's scheme knows client-go's types and v1alpha1, and the account that it runs with
// may do what the table in this package's doc.go lists.
func Add(mgr manager.Manager, leads *leader.Group, o Options) (unread func(context.Context, publish.Result) ([]string, error), err error) {
	o = o.withDefaults()
	m, err := newMetrics(o.Registerer)
	if err != nil {
		return nil, fmt.Errorf("count nodes: %w", err)
	}
	c := &counter{
		metrics: m, Options: o, cached: mgr.GetCache(), status: mgr.GetClient().Status(), heartbeats: newHeartbeats(o.Now), changed: make(chan struct{}, 1),
		cleaner: cleaner{live: mgr.GetAPIReader(), writer: mgr.GetClient(), log: o.Log},
		watch:   func(ctx context.Context, c *counter) error { return c.follow(ctx, mgr.GetCache()) },
	}
	if o.Label {
		c.labeller = &labeller{live: mgr.GetAPIReader(), writer: mgr.GetClient(), log: o.Log}
	}
	leads.Add(c)
	return c.unread, nil
}

// follow returns when all that exist are in the cache, and reports every change afterwards, until ctx is done.
func (c *counter) follow(ctx context.Context, from cache.Cache) error {
	for _, o := range []client.Object{&v1alpha1.GuardedNode{}, &v1alpha1.PipePolicy{}} {
		informer, err := from.GetInformer(ctx, o)
		if err != nil {
			return fmt.Errorf("watch %T: %w", o, err)
		}
		handle, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { c.came(nil, o) },
			UpdateFunc: func(before, o any) { c.came(before, o) },
			DeleteFunc: c.went,
		})
		if err != nil {
			return fmt.Errorf("watch %T: %w", o, err)
		}
		context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(handle) }) // fails only for handlers that are not there
	}
	return nil
}

// came asks for a count if an object has news. That a node is alive is no news, unless it was silent: then the
// next count finds it.
func (c *counter) came(before, o any) {
	switch o := o.(type) {
	case *v1alpha1.GuardedNode:
		c.heartbeats.hear(o)
		if was, ok := before.(*v1alpha1.GuardedNode); ok && sameReport(was.NodeReport, o.NodeReport) {
			return
		}
	case *v1alpha1.PipePolicy:
		if was, ok := before.(*v1alpha1.PipePolicy); ok && want(was) == want(o) && equality.Semantic.DeepEqual(was.Status.Nodes, o.Status.Nodes) {
			return
		}
	}
	periodic.Signal(c.changed)
}

func (c *counter) went(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if n, ok := o.(*v1alpha1.GuardedNode); ok {
		c.heartbeats.forget(n.Name)
	}
	periodic.Signal(c.changed)
}

// sameReport compares what counts and labels depend on.
func sameReport(a, b v1alpha1.NodeReport) bool {
	of := func(r v1alpha1.NodeReport) v1alpha1.NodeBundle {
		if r.Bundle == nil {
			return v1alpha1.NodeBundle{}
		}
		return v1alpha1.NodeBundle{
			Pool: r.Bundle.Pool, Revision: r.Bundle.Revision, PolicyRevision: r.Bundle.PolicyRevision, Invalid: r.Bundle.Invalid, Refused: r.Bundle.Refused,
		}
	}
	return a.State == b.State && samePipes(&a, &b) && slices.Equal(a.Schemas, b.Schemas) && (a.Bundle == nil) == (b.Bundle == nil) && of(a) == of(b)
}
