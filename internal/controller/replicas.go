package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// retryReport is how soon a report that did not arrive is repeated.
	retryReport = 5 * time.Second
	// reportTimeout bounds one report, and the removal of the Lease at the end.
	reportTimeout = 5 * time.Second
	// fieldOwner is the field manager of what the parts write.
	fieldOwner = client.FieldOwner("pipeguard")
)

// Replicas reports in a Lease what this replica decides by, and counts what the others report.
type Replicas struct {
	namespace, pod string
	leases         client.Writer
	cached         client.Reader // of Leases
	live           client.Reader // of the own Pod
	outcome        func() (Outcome, bool)
	wake           <-chan struct{}
	log            *zap.Logger
	now            func() time.Time

	uid     types.UID // of the own Pod, "" while it is not known
	started time.Time
}

// Start reports each new outcome at once and the last one every half minute, until ctx is done; then it removes the Lease.
// The first report waits for the first outcome, but not for ever: a replica that cannot decide is to be seen.
func (r *Replicas) Start(ctx context.Context) error {
	r.started = r.now()
	defer r.remove(ctx)
	for next := renewEvery; periodic.Wait(ctx, next, r.wake); {
		next = renewEvery
		if err := r.report(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("replica's Lease not written", zap.String(logkeys.Name, leaseName(r.pod)), zap.Error(err))
			next = retryReport
		}
	}
	return nil
}

// report writes the Lease, whatever it holds now: it has no other writer, so there is nothing to conflict with.
func (r *Replicas) report(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	r.findPod(ctx)
	o, _ := r.outcome()
	lease := newLease(r.namespace, r.pod, r.uid, o, r.started, r.now())
	patch, err := mergePatch(lease)
	if err != nil {
		return err
	}
	for range 3 { // it can be deleted, or made by the replica's former self, between two steps
		if err = r.leases.Patch(ctx, lease.DeepCopy(), patch, fieldOwner); !apierrors.IsNotFound(err) {
			return err
		}
		if err = r.leases.Create(ctx, lease.DeepCopy(), fieldOwner); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return err
}

// mergePatch is the whole Lease, to be written over what is there.
func mergePatch(l *coordinationv1.Lease) (client.Patch, error) {
	text, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"labels": l.Labels, "annotations": l.Annotations, "ownerReferences": l.OwnerReferences},
		"spec":     l.Spec,
	})
	if err != nil {
		return nil, fmt.Errorf("encode Lease: %w", err)
	}
	return client.RawPatch(types.MergePatchType, text), nil
}

// findPod looks once for the Pod that the Lease is to go with. A replica outside of the cluster has none.
func (r *Replicas) findPod(ctx context.Context) {
	if r.uid != "" {
		return
	}
	var pod corev1.Pod
	if err := r.live.Get(ctx, types.NamespacedName{Namespace: r.namespace, Name: r.pod}, &pod); err != nil {
		r.log.Debug("own Pod not found, its Lease has no owner", zap.String(logkeys.Namespace, r.namespace), zap.String(logkeys.Name, r.pod), zap.Error(err))
		return
	}
	r.uid = pod.UID
}

// remove takes the replica out of the count at once.
func (r *Replicas) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = r.namespace, leaseName(r.pod)
	if err := client.IgnoreNotFound(r.leases.Delete(ctx, lease)); err != nil {
		r.log.Warn("replica's Lease not removed", zap.String(logkeys.Name, lease.Name), zap.Error(err))
	}
}

// Count counts the replicas that decide by what this one decides by, and this one itself.
func (r *Replicas) Count(ctx context.Context) (ReplicaCount, error) {
	var list coordinationv1.LeaseList
	if err := r.cached.List(ctx, &list, client.InNamespace(r.namespace), client.MatchingLabels{v1alpha1.LabelReplica: "true"}); err != nil {
		return ReplicaCount{}, fmt.Errorf("list the Leases of the replicas: %w", err)
	}
	o, _ := r.outcome()
	return replicaCountOf(list.Items, o, r.now()), nil
}
