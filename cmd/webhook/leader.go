package main

import (
	"fmt"

	"go.uber.org/zap"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pipeguard/pipeguard/internal/controller/leader"
)

// leaderLease is the Lease that the leader holds. The chart makes it, so that it goes when the release goes.
const leaderLease = "pipeguard-leader"

// newLeader gives a manager the group of parts that the leader alone runs. The manager does not elect: it would end the
// process, and with it every review, when a slow API server does not renew the Lease in time.
func newLeader(o options, config *rest.Config, mgr manager.Manager, log *zap.Logger) (*leader.Group, error) {
	lock, err := leaderelection.NewResourceLock(config, mgr, leaderelection.Options{
		LeaderElection: o.Cluster.LeaderElect, LeaderElectionID: leaderLease, LeaderElectionNamespace: o.podNamespace, RenewDeadline: leader.RenewDeadline,
	})
	if err != nil {
		return nil, fmt.Errorf("elect a leader: %w", err)
	}
	group := leader.New(leader.Options{Lock: lock, Name: leaderLease, Log: log})
	return group, mgr.Add(group)
}
