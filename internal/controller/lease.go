package controller

import (
	"cmp"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

const (
	leasePrefix         = "pipeguard-replica-"
	labelManagedBy      = "app.kubernetes.io/managed-by"
	annotationAttempted = "pipeguard.dev/attempted"

	// renewEvery is how often it reports without a reason.
	renewEvery = 30 * time.Second
)

func leaseName(pod string) string { return leasePrefix + pod }

// CacheOf is what the manager's cache must keep, for cache.Options.ByObject. Of Leases it is those of the replicas, in their
// own namespace: without that the cache would ask for all Leases of the cluster, which the replicas may not read. Of policy
// objects it is their specification and status: other metadata can take megabytes, and nothing here reads it.
func CacheOf(namespace string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{
		&coordinationv1.Lease{}: {
			Namespaces: map[string]cache.Config{namespace: {}},
			Label:      labels.SelectorFromSet(labels.Set{v1alpha1.LabelReplica: "true"}),
		},
		&v1alpha1.PipePolicy{}:   {Transform: withoutExtras},
		&v1alpha1.PolicyModule{}: {Transform: withoutExtras},
	}
}

// withoutExtras removes metadata that nothing here reads.
func withoutExtras(o any) (any, error) {
	if m, ok := o.(client.Object); ok {
		m.SetLabels(nil)
		m.SetAnnotations(nil)
		m.SetFinalizers(nil)
		m.SetOwnerReferences(nil)
		m.SetManagedFields(nil)
	}
	return o, nil
}

// newLease says what a replica decides by.
func newLease(namespace, pod string, uid types.UID, o Outcome, started, now time.Time) *coordinationv1.Lease {
	failed := ""
	if o.Err != nil {
		failed = "true"
	}
	seconds := int32(v1alpha1.ReplicaLiveFor / time.Second)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        leaseName(pod),
			Labels:      map[string]string{v1alpha1.LabelReplica: "true", labelManagedBy: "pipeguard"},
			Annotations: map[string]string{v1alpha1.AnnotationRevision: o.Revision, annotationAttempted: o.Attempted, v1alpha1.AnnotationFailed: failed},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &pod,
			LeaseDurationSeconds: &seconds,
			AcquireTime:          &metav1.MicroTime{Time: started},
			RenewTime:            &metav1.MicroTime{Time: now},
		},
	}
	if uid != "" { // the Lease goes with its Pod, also when the replica had no time to remove it
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: uid}}
	}
	return lease
}

// ReplicaCount counts the replicas of the webhook.
type ReplicaCount struct {
	// Live replicas have reported within the last minute and a half.
	Live int32
	// Current are live and decide by what the outcome that was asked about decides by.
	Current int32
	// Behind names the others that are live, in order; Refusing those among them whose newest attempt failed.
	Behind, Refusing []string
}

// replicaCountOf counts the replicas that decide by the same as the one with this outcome.
func replicaCountOf(leases []coordinationv1.Lease, o Outcome, now time.Time) ReplicaCount {
	var c ReplicaCount
	for i := range leases {
		l := &leases[i]
		if l.Labels[v1alpha1.LabelReplica] != "true" || l.DeletionTimestamp != nil || !isLive(l, now) {
			continue
		}
		c.Live++
		if isCurrent(l, o) {
			c.Current++
			continue
		}
		name := l.Name
		if l.Spec.HolderIdentity != nil {
			name = cmp.Or(*l.Spec.HolderIdentity, name)
		}
		c.Behind = append(c.Behind, name)
		if l.Annotations[v1alpha1.AnnotationFailed] != "" {
			c.Refusing = append(c.Refusing, name)
		}
	}
	slices.Sort(c.Behind)
	slices.Sort(c.Refusing)
	return c
}

// isLive lets a time in the future count: a replica whose clock is ahead still decides, and must not be overlooked.
func isLive(l *coordinationv1.Lease, now time.Time) bool {
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) < v1alpha1.ReplicaLiveFor
}

// isCurrent compares, beside the revision, what was attempted: a revision does not cover all that goes beside the Rego.
// After a failed attempt nothing is known of how the attempt before is called elsewhere, and the revision has to do.
func isCurrent(l *coordinationv1.Lease, o Outcome) bool {
	if o.Revision == "" || l.Annotations[v1alpha1.AnnotationRevision] != o.Revision {
		return false
	}
	return o.Err != nil || (l.Annotations[annotationAttempted] == o.Attempted && l.Annotations[v1alpha1.AnnotationFailed] == "")
}
