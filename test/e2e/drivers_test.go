//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// The driver that the chart's profile azuredisk is for.
const (
	driverNamespace = "kube-system"
	driverAccount   = "csi-azuredisk-node-sa"
	driverContainer = "azuredisk"
	driverImage     = "mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi:v1.34.0"
)

// driverPod is a pod as the driver's DaemonSet makes them.
func driverPod(name string, changes ...change) *corev1.Pod {
	return pod(driverNamespace, name, append([]change{
		as(driverAccount, driverContainer), of(driverImage), onWindows, tolerant,
		mounts(diskPipe), mounts(`\\.\pipe\csi-proxy-volume-v1`), mounts(`\\.\pipe\csi-proxy-filesystem-v1`),
	}, changes...)...)
}

// tolerant lets a pod onto every node, as drivers' own manifests do: the cluster soon finds that nobody speaks for the node
// with Windows, and taints it.
func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func oneLineAdmitsADriver(t *testing.T) {
	namespace(t, driverNamespace, driverAccount, "other")
	mustRefuse(t, daemonSet(driverPod("driver-too-early")), "PG001")

	pods := webhookUIDs(t)
	before, err := replicaRevisions(t.Context())
	if err != nil || len(before) != replicas {
		t.Fatalf("revisions of replicas: %v, %v", before, err)
	}
	upgrade(t, "--set", "drivers.azuredisk.enabled=true")
	harness.Eventually(t, readyLimit, "every replica has the parameter", haveMoved(before))
	harness.Eventually(t, readyLimit, "the driver is admitted", admitsDriver)
	if diff := cmp.Diff(pods, webhookUIDs(t)); diff != "" {
		t.Errorf("pods were replaced for a parameter (-before +after):\n%s", diff)
	}

	set := daemonSet(driverPod("driver"))
	mustAdmit(t, set)
	harness.Eventually(t, readyLimit, "the controller has made the driver's pod", func(ctx context.Context) error {
		var made corev1.PodList
		if err := shared.Client.List(ctx, &made, client.InNamespace(driverNamespace), client.MatchingLabels{"daemon": "driver"}); err != nil {
			return err
		}
		if len(made.Items) != 1 {
			return fmt.Errorf("%d pods", len(made.Items))
		}
		return nil
	})

	mustRefuse(t, daemonSet(driverPod("another-account", as("other", driverContainer))), "PG010")
	mustRefuse(t, daemonSet(driverPod("another-container", as(driverAccount, "sidecar"))), "PG010")
	mustRefuse(t, daemonSet(driverPod("another-image", of("registry.example/azuredisk-csi:v1.34.0"))), "PG010")
	mustRefuse(t, daemonSet(driverPod("another-pipe", mounts(`\\.\pipe\csi-proxy-smb-v1`))), "PG001")
	mustRefuse(t, driverPod("all-pipes", mounts(`\\.\pipe\`)), "PG003")
	elsewhere := driverPod("another-namespace")
	elsewhere.Namespace, elsewhere.Spec.ServiceAccountName = "default", ""
	mustRefuse(t, elsewhere, "PG010")
}

// replicaRevisions are the revisions of the policies by which the webhook's replicas decide, by their leases.
func replicaRevisions(ctx context.Context) (map[string]string, error) {
	var leases coordinationv1.LeaseList
	if err := shared.Client.List(ctx, &leases, client.InNamespace(system)); err != nil {
		return nil, err
	}
	revisions := map[string]string{}
	for _, l := range leases.Items {
		if strings.HasPrefix(l.Name, "pipeguard-replica-") {
			revisions[l.Name] = l.Annotations["pipeguard.dev/revision"]
		}
	}
	return revisions, nil
}

// haveMoved says whether every replica decides by another revision than before. To ask them is not enough: the API server
// keeps its connection to one of them.
func haveMoved(before map[string]string) func(context.Context) error {
	return func(ctx context.Context) error {
		now, err := replicaRevisions(ctx)
		if err != nil {
			return err
		}
		for name, revision := range before {
			if now[name] == "" || now[name] == revision {
				return fmt.Errorf("%s decides by %q, as before", name, now[name])
			}
		}
		return nil
	}
}

// admitsDriver asks several times: a new connection goes to any replica.
func admitsDriver(ctx context.Context) error {
	for i := range 10 * replicas {
		err := shared.Client.Create(ctx, driverPod(fmt.Sprintf("asked-%d", i), unscheduled), client.DryRunAll)
		if err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}
