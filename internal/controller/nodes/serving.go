package nodes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/periodic"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/served"
)

// settle is how long a replica waits after a change before it sums up the reports again.
const settle = time.Second

// Serving is what one replica knows of the pipes that nodes serve: the leader's knowledge would be of no use to the reviews of others.
type Serving struct {
	cached     client.Reader
	watch      func(ctx context.Context, s *Serving) error
	log        *zap.Logger
	heartbeats *heartbeats
	changed    chan struct{}
	pipes      atomic.Pointer[served.Pipes] // nil if nothing is known

	fault fault // of the goroutine that is in Start
}

// AddServing gives the manager of every replica the part. The manager's scheme knows v1alpha1, and the account may do what the table in
// this package's doc.go lists. Log defaults to none.
func AddServing(mgr manager.Manager, log *zap.Logger) (*Serving, error) {
	s := newServing(mgr.GetCache(), cmp.Or(log, zap.NewNop()), time.Now)
	s.watch = func(ctx context.Context, s *Serving) error { return s.follow(ctx, mgr.GetCache()) }
	return s, mgr.Add(s)
}

func newServing(cached client.Reader, log *zap.Logger, now func() time.Time) *Serving {
	return &Serving{cached: cached, log: log, heartbeats: newHeartbeats(now), changed: make(chan struct{}, 1)}
}

// Missing reports whether it is certain that no node that reports serves a pipe, named in lower case, or that the node of a name does not,
// if one is given. It waits for nothing.
func (s *Serving) Missing(pipe, node string) bool { return s.pipes.Load().Missing(pipe, node) }

// Start keeps the knowledge until ctx is done. Without the definition of GuardedNodes nothing is known.
func (s *Serving) Start(ctx context.Context) error {
	for {
		err := s.watch(ctx, s)
		if err == nil || ctx.Err() != nil {
			break
		}
		s.tell(err)
		periodic.Sleep(ctx, every)
	}
	for ctx.Err() == nil {
		s.collect(ctx)
		periodic.Sleep(ctx, settle)
		periodic.Wait(ctx, every, s.changed) // nodes fall silent without a word
	}
	return nil
}

// collect sums up the reports. What cannot be listed is not known. The objects are the cache's own, and nothing here changes them.
func (s *Serving) collect(ctx context.Context) {
	var nodes v1alpha1.GuardedNodeList
	if err := s.cached.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		if ctx.Err() == nil {
			s.tell(err)
		}
		s.pipes.Store(nil)
		return
	}
	s.tell(nil)
	now := s.heartbeats.now()
	s.pipes.Store(served.Collect(nodes.Items, func(n *v1alpha1.GuardedNode) bool {
		return served.Alive(n, s.heartbeats.last(n), now)
	}))
}

// tell logs why nothing is known, and when that is over.
func (s *Serving) tell(err error) {
	switch {
	case !s.fault.isNews(err):
	case err != nil:
		s.log.Warn("which nodes serve which pipes is not known", zap.Error(err))
	default:
		s.log.Info("which nodes serve which pipes is known")
	}
}

// follow returns when all reports that exist are in the cache.
func (s *Serving) follow(ctx context.Context, from cache.Cache) error {
	informer, err := from.GetInformer(ctx, &v1alpha1.GuardedNode{})
	if err != nil {
		return fmt.Errorf("watch GuardedNodes: %w", err)
	}
	if _, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.came(nil, o) },
		UpdateFunc: func(before, o any) { s.came(before, o) },
		DeleteFunc: s.went,
	}); err != nil {
		return fmt.Errorf("watch GuardedNodes: %w", err)
	}
	return nil
}

// came asks for a summary if a report has news. That a node is alive again is found by the next one.
func (s *Serving) came(before, o any) {
	n, ok := o.(*v1alpha1.GuardedNode)
	if !ok {
		return
	}
	s.heartbeats.hear(n)
	if was, ok := before.(*v1alpha1.GuardedNode); ok && samePipes(&was.NodeReport, &n.NodeReport) && policyset.Decides(was) == policyset.Decides(n) {
		return
	}
	periodic.Signal(s.changed)
}

func (s *Serving) went(o any) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	if n, ok := o.(*v1alpha1.GuardedNode); ok {
		s.heartbeats.forget(n.Name)
	}
	periodic.Signal(s.changed)
}

// samePipes says whether two reports tell the same of pipes.
func samePipes(a, b *v1alpha1.NodeReport) bool {
	one, oneKnown := served.By(a)
	other, otherKnown := served.By(b)
	return oneKnown == otherKnown && slices.Equal(one, other)
}
