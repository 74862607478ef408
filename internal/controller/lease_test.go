package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// lease is what a replica reported that long before noon.
func lease(pod string, o Outcome, ago time.Duration) coordinationv1.Lease {
	return *newLease("pipeguard-system", pod, "uid-"+"pod", o, noon.Add(-time.Hour), noon.Add(-ago))
}

func TestCensusCountsWhoIsLiveAndDecidesByTheSame(t *testing.T) {
	mine := Outcome{Revision: "sha256:new", Attempted: "n"}
	failed := Outcome{Revision: "sha256:new", Attempted: "later", Err: errDisk}
	deleted := lease("c", mine, 0)
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	stranger := lease("c", mine, 0)
	stranger.Labels = nil
	never := lease("c", mine, 0)
	never.Spec.RenewTime = nil
	anonymous := lease("c", Outcome{}, 0)
	anonymous.Spec.HolderIdentity = nil
	for name, c := range map[string]struct {
		outcome Outcome
		leases  []coordinationv1.Lease
		want    ReplicaCount
	}{
		"nobody":                          {mine, nil, ReplicaCount{}},
		"all agree":                       {mine, []coordinationv1.Lease{lease("a", mine, 0), lease("b", mine, 0)}, ReplicaCount{Live: 2, Current: 2}},
		"almost too late to count":        {mine, []coordinationv1.Lease{lease("a", mine, v1alpha1.ReplicaLiveFor-time.Second)}, ReplicaCount{Live: 1, Current: 1}},
		"too late to count":               {mine, []coordinationv1.Lease{lease("a", mine, v1alpha1.ReplicaLiveFor)}, ReplicaCount{}},
		"a clock that is ahead":           {mine, []coordinationv1.Lease{lease("a", mine, -time.Hour)}, ReplicaCount{Live: 1, Current: 1}},
		"a Lease that is going":           {mine, []coordinationv1.Lease{deleted}, ReplicaCount{}},
		"a Lease of something else":       {mine, []coordinationv1.Lease{stranger}, ReplicaCount{}},
		"a Lease that was never renewed":  {mine, []coordinationv1.Lease{never}, ReplicaCount{}},
		"a Lease that does not say whose": {mine, []coordinationv1.Lease{anonymous}, ReplicaCount{Live: 1, Behind: []string{"pipeguard-replica-c"}}},
		"one is behind": {mine, []coordinationv1.Lease{lease("b", Outcome{Revision: "sha256:old", Attempted: "o"}, 0), lease("a", mine, 0)},
			ReplicaCount{Live: 2, Current: 1, Behind: []string{"b"}}},
		"one refuses": {mine, []coordinationv1.Lease{lease("b", Outcome{Revision: "sha256:old", Attempted: "n", Err: errDisk}, 0), lease("a", Outcome{}, 0)},
			ReplicaCount{Live: 2, Behind: []string{"a", "b"}, Refusing: []string{"b"}}},
		"the same revision with something else beside it": {mine, []coordinationv1.Lease{lease("a", Outcome{Revision: "sha256:new", Attempted: "o"}, 0)},
			ReplicaCount{Live: 1, Behind: []string{"a"}}},
		"the same revision as the last good": {mine, []coordinationv1.Lease{lease("a", failed, 0)}, ReplicaCount{Live: 1, Behind: []string{"a"}, Refusing: []string{"a"}}},
		"the same attempt, which failed there": {mine, []coordinationv1.Lease{lease("a", Outcome{Revision: "sha256:new", Attempted: "n", Err: errDisk}, 0)},
			ReplicaCount{Live: 1, Behind: []string{"a"}, Refusing: []string{"a"}}},
		"all refuse and keep the same": {failed, []coordinationv1.Lease{lease("a", failed, 0), lease("b", mine, 0)}, ReplicaCount{Live: 2, Current: 2}},
		"nothing decides":              {Outcome{Err: errDisk}, []coordinationv1.Lease{lease("a", Outcome{Err: errDisk}, 0)}, ReplicaCount{Live: 1, Behind: []string{"a"}, Refusing: []string{"a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, replicaCountOf(c.leases, c.outcome, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALeaseGoesWithItsPod(t *testing.T) {
	with := newLease("ns", "web-1", "uid-1", Outcome{}, noon, noon)
	want := []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web-1", UID: "uid-1"}}
	if diff := cmp.Diff(want, with.OwnerReferences); diff != "" {
		t.Error(diff)
	}
	if without := newLease("ns", "web-1", "", Outcome{}, noon, noon); without.OwnerReferences != nil {
		t.Errorf("owners %v without a Pod", without.OwnerReferences) // the garbage collector would remove it at once
	}
}

func TestTheCacheKeepsNoExtraMetadataOfPolicyObjects(t *testing.T) {
	for o, c := range CacheOf("pipeguard-system") {
		if _, ok := o.(*coordinationv1.Lease); ok {
			continue
		}
		p := &v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{
			Name: "p", UID: "u", ResourceVersion: "1", Generation: 2, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"example.com/f"},
			OwnerReferences: []metav1.OwnerReference{{Name: "o"}}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		}, Spec: v1alpha1.PipePolicySpec{Pipes: []v1alpha1.PipePattern{"x"}}}
		got, err := c.Transform(p)
		want := &v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", ResourceVersion: "1", Generation: 2}, Spec: v1alpha1.PipePolicySpec{Pipes: []v1alpha1.PipePattern{"x"}}}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%T (-want +got): %s%v", o, d, err)
		}
	}
}
