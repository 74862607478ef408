//go:build e2e

package e2e_test

import (
	"context"
	"testing"
)

// TestPipeguardOnAWholeCluster tells the life of one release in order: each chapter begins where the one before ended.
func TestPipeguardOnAWholeCluster(t *testing.T) {
	before(t)
	if !t.Run("an installation whose image cannot be pulled blocks nobody", withoutAnImageNothingIsBlocked) {
		show(t)
	}
	if !t.Run("a chart without values installs what enforces", installs) {
		show(t)
		t.Fatal("nothing else can be tested")
	}
	for _, chapter := range []struct {
		claim string
		run   func(*testing.T)
	}{
		{"helm test passes", helmTestPasses},
		{"pods with pipes are refused with a reason", refusesPipes},
		{"changes of the webhook configurations by another hand are reported or undone", changedConfigurations},
		{"ordinary pods run", ordinaryPodsRun},
		{"a debug container gets no pipe, not even in a pod that is older than the webhook", debugContainersGetNoPipe},
		{"one policy refuses a pod at admission and a call on the node", onePolicyDecidesAtBothEnds},
		{"one line admits a driver and nobody else", oneLineAdmitsADriver},
		{"a debug container in a driver's pod gets no pipe", debugContainersOfDriversGetNoPipe},
		{"what reaches a node is for subjects alone, and no pod of Linux is asked about", nodesAreForSubjects},
		{"nothing slips through while webhook pods are killed", nothingSlipsThrough},
		{"a static pod with a pipe is reported", staticPodsAreReported},
		{"findings are written in a standard kind while that is wanted", standardReportsWhileWanted},
		{"a node comes back with the webhook down", nodeComesBack},
		{"with a floor and no webhook no pipe is open, and permitted drivers start", floorHoldsAlone},
		{"a cluster that was stopped as a whole heals without a hand, and no pipe is open meanwhile", clusterHeals},
		{"a floor that another hand removes is reported and put back", floorIsPutBack},
		{"an attack while the webhook is killed at random opens no pipe and stops no driver", attackUnderKills},
		{"a lost certificate is replaced", lostCertificateIsReplaced},
		{"an upgrade and a rollback leave no gap", upgradeAndRollbackLeaveNoGap},
		{"the preset observe refuses nothing, and strict what only says that it is privileged", presetsFromObserveToStrict},
		{"the node component's pods pass where other HostProcess containers are refused", nodeComponentPassesAlone},
		{"the guard can be turned off and on", breakGlass},
		{"an uninstall leaves the policies, and nothing else", uninstallLeavesPolicies},
		{"the lines of the README install what enforces, over the policies that stayed", readmeInstalls},
		{"without the CRDs an uninstall leaves nothing", removalLeavesNothing},
	} {
		if !t.Run(chapter.claim, chapter.run) {
			show(t)
		}
	}
}

// show prints what the cluster says of its state, for whoever reads of a failure.
func show(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"get", "pods,daemonsets,deployments,leases", "--all-namespaces", "--output=wide"},
		{"get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"},
		{"logs", "--namespace=" + system, "--selector=app.kubernetes.io/component=webhook", "--prefix", "--tail=40"},
		{"logs", "--namespace=" + system, "--selector=app.kubernetes.io/component=webhook", "--prefix", "--tail=20", "--previous"},
	} {
		out, err := shared.Kubectl(context.Background(), args...)
		if err != nil {
			continue // there is none, or the failure is the API server's own
		}
		t.Logf("kubectl %q\n%s", args, out)
	}
}
