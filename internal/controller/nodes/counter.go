package nodes

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/controller/publish"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// gather is how long the counter waits after a change: nodes take over a bundle one after the other, and every status
	// tells of all of them.
	gather = 5 * time.Second
	// perWrite bounds the statuses that are written on average: each is stored by etcd and sent to all who watch.
	perWrite = 50 * time.Millisecond
	// every is how often it counts without a reason: nodes fall silent without a word.
	every = 30 * time.Second
	// listTimeout bounds the wait of a publisher for a cache that is not filled.
	listTimeout = 10 * time.Second
	// fieldOwner is the field manager of what is written.
	fieldOwner = client.FieldOwner("pipeguard-nodes")
)

// Options configure Add.
type Options struct {
	// Published returns what became of the bundle of each pool. Nil means that no bundles are made here.
	Published func() []publish.Result
	// Label has Nodes say in labels which pipes they serve.
	Label bool
	// Registerer takes the metrics. Nil registers none.
	Registerer prometheus.Registerer
	// Log receives diagnostics. Default none.
	Log *zap.Logger
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, zap.NewNop())
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// counter writes status.nodes of PipePolicies, and nothing else of it: the rest is others'. It runs on the leader.
type counter struct {
	Options
	cached     client.Reader
	watch      func(ctx context.Context, c *counter) error
	status     client.SubResourceWriter
	cleaner    cleaner
	labeller   *labeller // nil without Options.Label
	heartbeats *heartbeats
	metrics    *metrics
	changed    chan struct{}
}

// Start counts until ctx is done. A cluster whose definitions are of an earlier release has no nodes to count, and reviews
// are answered all the same.
func (c *counter) Start(ctx context.Context) error {
	defer c.metrics.nodes.Reset() // the leader alone has series
	c.heartbeats.reset()
	if c.labeller != nil {
		c.labeller.reset()
	}
	c.await(ctx)
	for ctx.Err() == nil {
		written, err := c.count(ctx)
		if err != nil && ctx.Err() == nil {
			c.Log.Error("nodes not counted", zap.Error(err)) // the next count tries again
		}
		periodic.Sleep(ctx, time.Duration(written)*perWrite)
		select {
		case <-ctx.Done():
		case <-time.After(every):
		case <-c.changed:
			periodic.Sleep(ctx, gather)
			select { // what changed meanwhile is counted with it
			case <-c.changed:
			default:
			}
		}
	}
	return nil
}

// await returns when the watch has begun, or ctx is done.
func (c *counter) await(ctx context.Context) {
	var last fault
	for {
		err := c.watch(ctx, c)
		if ctx.Err() != nil {
			return
		}
		isNews := last.isNews(err)
		switch {
		case err == nil && isNews:
			c.Log.Info("nodes are counted")
		case isNews:
			c.Log.Warn("nodes are not counted", zap.Error(err))
		}
		if err == nil {
			return
		}
		periodic.Sleep(ctx, every)
	}
}

// count looks at all nodes, and writes the statuses that are not as they should be.
func (c *counter) count(ctx context.Context) (written int, err error) {
	var nodes v1alpha1.GuardedNodeList
	if err := c.cached.List(ctx, &nodes); err != nil {
		return 0, fmt.Errorf("list GuardedNodes: %w", err)
	}
	var policies v1alpha1.PipePolicyList
	if err := c.cached.List(ctx, &policies); err != nil {
		return 0, fmt.Errorf("list PipePolicies: %w", err)
	}
	found := c.snapshot(nodes.Items)
	c.metrics.counted(found)
	c.cleaner.clean(ctx, found)
	written = c.label(ctx, found)
	for i := range policies.Items {
		p := &policies.Items[i]
		next := found.counts(want(p))
		if p.DeletionTimestamp != nil || equality.Semantic.DeepEqual(p.Status.Nodes, next) {
			continue
		}
		if err := c.write(ctx, p.Name, next); err != nil {
			return written, fmt.Errorf("status of PipePolicy %s: %w", p.Name, err)
		}
		written++
	}
	return written, nil
}

// label keeps the labels of Nodes, and returns how many Nodes it wrote. Its faults keep no status from being written.
func (c *counter) label(ctx context.Context, found *snapshot) (written int) {
	if c.labeller == nil {
		return 0
	}
	written, more, err := c.labeller.label(ctx, found)
	if err != nil && ctx.Err() == nil {
		c.Log.Error("Nodes not labelled", zap.Error(err)) // the next count tries again
	}
	if more {
		periodic.Signal(c.changed)
	}
	return written
}

// unread is publish.Options.Unread. What cannot be listed in time is unknown.
func (c *counter) unread(ctx context.Context, r publish.Result) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	var nodes v1alpha1.GuardedNodeList
	if err := c.cached.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("list GuardedNodes: %w", err)
	}
	return c.snapshot(nodes.Items).unread(r), nil
}

func (c *counter) snapshot(nodes []v1alpha1.GuardedNode) *snapshot {
	out := &snapshot{heard: c.heartbeats.last, publishes: c.Published != nil, now: c.Now(), published: map[string]publish.Result{}}
	out.nodes = slices.DeleteFunc(nodes, func(n v1alpha1.GuardedNode) bool { return n.DeletionTimestamp != nil })
	slices.SortFunc(out.nodes, func(a, b v1alpha1.GuardedNode) int { return strings.Compare(a.Name, b.Name) })
	if c.Published != nil {
		for _, r := range c.Published() {
			out.published[r.Pool] = r
		}
	}
	return out
}

// write replaces this part of a status, whatever the rest is: it has no other writer.
func (c *counter) write(ctx context.Context, name string, n *v1alpha1.NodeCounts) error {
	text, err := patchOf(n)
	if err != nil {
		return err
	}
	p := &v1alpha1.PipePolicy{}
	p.Name = name
	if err := c.status.Patch(ctx, p, client.RawPatch(types.MergePatchType, text), fieldOwner); err != nil {
		return client.IgnoreNotFound(err) // deleted in between
	}
	c.Log.Debug("nodes counted", zap.String(logkeys.Name, name))
	return nil
}

// patchOf is a merge patch after which a status says this and nothing else of nodes: what is left out would stay.
func patchOf(n *v1alpha1.NodeCounts) ([]byte, error) {
	type counts v1alpha1.NodeCounts
	type whole struct {
		*counts
		Others []v1alpha1.OtherNode `json:"others"`
	}
	var nodes *whole
	if n != nil {
		nodes = &whole{(*counts)(n), n.Others}
	}
	return json.Marshal(map[string]any{"status": map[string]any{"nodes": nodes}})
}
