//go:build !windows

package cluster

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Upgrade grants the rights of a chart that was rendered with other values, and replaces all replicas by as many with
// further arguments as Deployments do: an old one goes when its successor is ready. Nil takes the release's own chart.
func (r *Release) Upgrade(ctx context.Context, chart Chart, replicas int, args ...string) error {
	if chart == nil {
		chart = r.options.Chart
	}
	for _, o := range chart.Kinds("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding") {
		if err := r.api.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o.DeepCopy()), client.FieldOwner("helm"), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	old := append([]*Replica{}, r.Replicas...)
	for range replicas {
		replica, err := r.AddReplica(ctx, args...)
		if err != nil {
			return err
		}
		if err := replica.AwaitReady(ctx); err != nil {
			return err
		}
	}
	for _, replica := range old {
		if err := r.StopReplica(ctx, replica); err != nil {
			return err
		}
	}
	return r.AwaitAsked(ctx)
}
