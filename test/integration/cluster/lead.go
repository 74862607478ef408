//go:build !windows

package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// holder is who leads while replicas are kept from it.
const holder = "tests"

// Lead takes the lead, so that no replica that is started from now on writes. There must be no leader.
func (r *Release) Lead(ctx context.Context) error {
	now := metav1.NewMicroTime(time.Now())
	return r.lease(ctx, coordinationv1.LeaseSpec{
		HolderIdentity: new(holder), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
	})
}

// GiveUpLead lets a replica lead again.
func (r *Release) GiveUpLead(ctx context.Context) error {
	now := metav1.NewMicroTime(time.Now())
	return r.lease(ctx, coordinationv1.LeaseSpec{
		HolderIdentity: new(""), LeaseDurationSeconds: new(int32(1)), AcquireTime: &now, RenewTime: &now,
	})
}

func (r *Release) lease(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	l := &coordinationv1.Lease{}
	if err := r.api.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: Lease}, l); err != nil {
		return fmt.Errorf("read the leader's lease: %w", err)
	}
	l.Spec = spec
	if err := r.api.Client.Update(ctx, l); err != nil {
		return fmt.Errorf("write the leader's lease: %w", err)
	}
	return nil
}
