//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// nodeComesBack takes away the power of the node, and all pods, so that everything has to be created while no webhook
// answers, the webhook itself included.
func nodeComesBack(t *testing.T) {
	// A network, and what kube-proxy is on most clusters.
	sets := []string{"network", "proxy"}
	mustAdmit(t, daemonSet(pod(driverNamespace, "network", mounts("/var/lib/cni"), mounts("/run"), privileged, hostNetwork, onLinux)))
	mustAdmit(t, daemonSet(pod(driverNamespace, "proxy", mounts("/run/xtables.lock"), mounts("/lib"), privileged, hostNetwork, onLinux)))
	for _, name := range sets {
		harness.Eventually(t, readyLimit, name+" runs", ready(driverNamespace, 1, client.MatchingLabels{"daemon": name}))
	}

	if err := shared.StopNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	gone := map[string]bool{}
	var pods corev1.PodList
	if err := shared.Client.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName != "windows" {
			gone[string(p.UID)] = true
			remove(t, &p)
		}
	}
	err := shared.Client.Create(t.Context(), pod("default", "evil", mounts(diskPipe), onWindows))
	if v := verdictOf(err); v != unreachable {
		t.Errorf("without a node, a pod with a pipe is %s, want %s: %v", v, unreachable, err)
	}
	// What would only be recorded, or is of Linux, does not wait for a webhook.
	for _, p := range []*corev1.Pod{
		hostDriverPod("host-driver-without-webhook", mounts(`C:\var\lib\kubelet`)), pod("default", "network-without-webhook", mounts("/opt/cni/bin"), unscheduled),
		pod("default", "linux-without-webhook", mounts(diskPipe), mounts("/"), onLinux, unscheduled),
	} {
		mustAdmit(t, p)
		remove(t, p)
	}
	harness.Eventually(t, readyLimit, "controllers have made every pod anew without the webhook", func(ctx context.Context) error {
		for _, name := range sets {
			if err := made(ctx, 1, driverNamespace, client.MatchingLabels{"daemon": name}, gone); err != nil {
				return err
			}
		}
		return made(ctx, replicas, system, webhookPods, gone)
	})

	since := time.Now()
	if err := shared.StartNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.AwaitNode(t.Context(), since); err != nil {
		t.Fatal(err)
	}
	for _, name := range sets {
		harness.Eventually(t, readyLimit, name+" runs again", ready(driverNamespace, 1, client.MatchingLabels{"daemon": name}))
	}
	harness.Eventually(t, readyLimit, "the webhook enforces again", enforces)
	t.Logf("from the start of the node until the webhook enforces: %.0f s", time.Since(since).Seconds())
}

// onLinux keeps the pods of a DaemonSet off the node that is only an object.
func onLinux(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelOSStable: "linux"} }

// made asks that there are pods with the labels that are not among those that are gone.
func made(ctx context.Context, want int, namespace string, labels client.MatchingLabels, gone map[string]bool) error {
	var pods corev1.PodList
	if err := shared.Client.List(ctx, &pods, client.InNamespace(namespace), labels); err != nil {
		return err
	}
	for _, p := range pods.Items {
		if !gone[string(p.UID)] {
			want--
		}
	}
	if want > 0 {
		return fmt.Errorf("%d pods with %v in %s are missing", want, labels, namespace)
	}
	return nil
}
