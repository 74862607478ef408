package nodes

import (
	"context"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/logkeys"
)

const (
	// cleanEvery is how often Nodes are looked for whose reports have stopped.
	cleanEvery = 10 * time.Minute
	// maxLooks bounds how many are looked for at a time.
	maxLooks = 50
)

// cleaner removes reports of nodes that are gone. Nodes are asked for one by one and only when they are silent, which
// spares a watch of all.
type cleaner struct {
	live   client.Reader
	writer client.Writer
	log    *zap.Logger

	last time.Time
	next string // where the last round has stopped
}

func (c *cleaner) clean(ctx context.Context, found *snapshot) {
	if !c.last.IsZero() && found.now.Sub(c.last) < cleanEvery {
		return
	}
	c.last = found.now
	var silent []*v1alpha1.GuardedNode
	for i := range found.nodes {
		if n := &found.nodes[i]; found.isSilent(n) {
			silent = append(silent, n)
		}
	}
	for _, n := range turn(silent, &c.next) {
		if err := c.remove(ctx, n); err != nil && ctx.Err() == nil {
			c.log.Warn("report of a silent node not looked at", zap.String(logkeys.Name, n.Name), zap.Error(err))
		}
	}
}

// turn returns at most maxLooks, beginning where the last turn has stopped.
func turn(all []*v1alpha1.GuardedNode, next *string) []*v1alpha1.GuardedNode {
	if len(all) <= maxLooks {
		return all
	}
	start := 0
	for i, n := range all {
		if n.Name == *next {
			start = i
		}
	}
	out := make([]*v1alpha1.GuardedNode, 0, maxLooks)
	for i := range maxLooks {
		out = append(out, all[(start+i)%len(all)])
	}
	*next = all[(start+maxLooks)%len(all)].Name
	return out
}

// remove deletes the report of a Node that does not exist, unless it has reported meanwhile.
func (c *cleaner) remove(ctx context.Context, n *v1alpha1.GuardedNode) error {
	node := &metav1.PartialObjectMetadata{}
	node.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err := c.live.Get(ctx, client.ObjectKey{Name: n.Name}, node)
	if err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	err = c.writer.Delete(ctx, &v1alpha1.GuardedNode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}},
		client.Preconditions{UID: &n.UID, ResourceVersion: &n.ResourceVersion})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		c.log.Info("report removed: its Node is gone", zap.String(logkeys.Name, n.Name))
	}
	return err
}
