//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/routes"
)

// floorName is the name that the chart gives the floor.
const floorName = "pipeguard-floor"

// withFloor sets what the guide recommends to those who want permitted drivers to start while the webhook is down.
var withFloor = []string{"--set", "floor.mode=Always,webhook.failurePolicy=Ignore"}

// isFloored asks that the floor refuses a pod with a pipe.
func isFloored(ctx context.Context) error {
	err := shared.Client.Create(ctx, pod("default", "probe", mounts(diskPipe), onWindows), client.DryRunAll)
	if v := verdictOf(err); v != floored {
		return fmt.Errorf("a pod with a pipe is %s: %w", v, errors.Join(err))
	}
	return nil
}

// noPipeIsOpen asks about every spelling of a pipe by every route.
func noPipeIsOpen(t *testing.T) {
	t.Helper()
	all := routes.Openings(t, "default")
	byFloor := 0
	for _, o := range all {
		err := shared.Client.Create(t.Context(), o.Object, client.DryRunAll)
		switch v := verdictOf(err); {
		case v == admitted:
			t.Errorf("OPEN: %T with %q, %q is admitted", o.Object, o.HostPath, o.SubPath)
		case v == floored:
			byFloor++
		case !apierrors.IsInvalid(err): // such an object cannot be stored
			t.Errorf("%T with %q, %q: %s: %v", o.Object, o.HostPath, o.SubPath, v, err)
		}
	}
	if byFloor < len(all)*3/4 {
		t.Errorf("the floor refused %d of %d", byFloor, len(all))
	}
}

// floorHoldsAlone takes the webhook away from a cluster with a floor.
func floorHoldsAlone(t *testing.T) {
	upgrade(t, withFloor...)
	harness.Eventually(t, readyLimit, "the floor refuses", isFloored)
	scale(t, "0")
	defer func() {
		scale(t, "2")
		harness.Eventually(t, readyLimit, "the webhook enforces again", enforces)
	}()
	harness.Eventually(t, readyLimit, "no pod of the webhook is left", ready(system, 0, webhookPods))

	noPipeIsOpen(t)
	driver := daemonSet(driverPod("floored-driver"))
	mustAdmit(t, driver)
	harness.Eventually(t, readyLimit, "the driver's pod is made", hasMade(driverNamespace, "floored-driver"))
	for _, p := range []*corev1.Pod{driverPod("another-account", as("other", driverContainer)), driverPod("another-image", of("registry.example/azuredisk-csi:v1.34.0"))} {
		if v := verdictOf(shared.Client.Create(t.Context(), p)); v != floored {
			t.Errorf("%s is %s", p.Name, v)
		}
	}
	mustAdmit(t, daemonSet(hostDriverPod("host-driver-by-the-floor", mounts(`C:\var\lib\kubelet`))))
	mustAdmit(t, daemonSet(pod(driverNamespace, "proxy-by-the-floor", asHostProcess(localSystem), onWindows)))
	linux := pod("default", "linux-by-the-floor", mounts("/var/lib/cni"))
	mustAdmit(t, linux)
	harness.Eventually(t, readyLimit, "a pod of Linux runs", running(linux))
}

// hasMade asks that a DaemonSet has made its one pod.
func hasMade(namespace, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return made(ctx, 1, namespace, client.MatchingLabels{"daemon": name}, nil)
	}
}

// clusterHeals takes the power of everything, and all pods, so that at the next start each pod is made anew before there can be a webhook.
func clusterHeals(t *testing.T) {
	mustAdmit(t, daemonSet(pod(driverNamespace, "network", mounts("/var/lib/cni"), mounts("/run"), privileged, hostNetwork, onLinux)))
	mustAdmit(t, daemonSet(driverPod("cold-driver")))
	mustAdmit(t, daemonSet(pod(driverNamespace, "cold-proxy", asHostProcess(localSystem), onWindows, tolerant)))
	harness.Eventually(t, readyLimit, "the network runs", ready(driverNamespace, 1, client.MatchingLabels{"daemon": "network"}))

	if err := shared.StopNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	shared.StopControllers() // else they would make the pods again before the API server stops
	gone := map[string]bool{}
	var pods corev1.PodList
	if err := shared.Client.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		gone[string(p.UID)] = true
		remove(t, &p)
	}
	shared.StopControlPlane()

	attackers, since := knock(t), time.Now()
	if err := shared.StartControlPlane(t.Context()); err != nil {
		t.Fatal(err)
	}
	noPipeIsOpen(t)
	for _, name := range []string{"network", "cold-driver", "cold-proxy"} {
		harness.Eventually(t, readyLimit, name+" is made without a webhook", func(ctx context.Context) error {
			return made(ctx, 1, driverNamespace, client.MatchingLabels{"daemon": name}, gone)
		})
	}
	if err := shared.StartNode(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := shared.AwaitNode(t.Context(), since); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, readyLimit, "the network runs again", ready(driverNamespace, 1, client.MatchingLabels{"daemon": "network"}))
	harness.Eventually(t, readyLimit, "the webhook enforces again", enforces)
	t.Logf("from the start of the control plane until the webhook enforces: %.0f s", time.Since(since).Seconds())
	attackers()
}

// knock asks for pods with a pipe without a pause, from before there is an API server. What it returns ends that, and fails the test if one was admitted.
func knock(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	counts := map[verdict]int{}
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			err := shared.Client.Create(ctx, pod("default", fmt.Sprintf("knocks-%d", i), mounts(diskPipe), onWindows, unscheduled))
			if ctx.Err() == nil {
				counts[verdictOf(err)]++
			}
			time.Sleep(2 * time.Millisecond)
		}
	})
	end := sync.OnceFunc(func() { cancel(); group.Wait() })
	t.Cleanup(end)
	return func() {
		t.Helper()
		end()
		t.Logf("from before the first answer on: %v", counts)
		if counts[admitted] > 0 || counts[floored] < 100 {
			t.Errorf("%d pods with a pipe were admitted, %d refused by the floor", counts[admitted], counts[floored])
		}
	}
}

func floorIsPutBack(t *testing.T) {
	for _, o := range []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: floorName}},
		&admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: floorName}},
	} {
		if err := shared.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, readyLimit, fmt.Sprintf("%T is back", o), func(ctx context.Context) error {
			return shared.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
		})
	}
	harness.Eventually(t, readyLimit, "the floor refuses again", isFloored)
	harness.Eventually(t, readyLimit, "that is an event", happened(floorName, "FloorRestored"))

	// The guide has this deleted for policies to be changed without a webhook. The floor goes with the release alone.
	policies := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "pipeguard-policies"}}
	if err := shared.Client.Delete(t.Context(), policies); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(time.Second) { // the cluster would collect it by then
		if err := isFloored(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	upgrade(t)
	harness.Eventually(t, readyLimit, "the webhook enforces again", enforces)
}

// envAttack is for how long the attack goes on, as a Go duration.
const envAttack = "PIPEGUARD_E2E_ATTACK"

// attackUnderKills has every kind of object asked for while the webhook is killed in every way, again and again.
func attackUnderKills(t *testing.T) {
	limit := 45 * time.Second
	if text := os.Getenv(envAttack); text != "" {
		var err error
		if limit, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, readyLimit, "the webhook enforces", enforces)
	l := startLoad(t, append(everything, openings)...)
	kills := 0
	for began := time.Now(); time.Since(began) < limit; kills++ {
		switch kills % 4 {
		case 0:
			shared.Kill("webhook")
		case 1:
			deleteWebhookPods(t, false)
		case 2:
			shared.Kill("webhook")
			time.Sleep(time.Duration(kills%7) * 300 * time.Millisecond)
			shared.Kill("webhook")
		case 3:
			deleteWebhookPods(t, true)
		}
		time.Sleep(time.Duration(1+kills*7%11) * time.Second) // at one moment of a start, and at another
		harness.Eventually(t, readyLimit, "there are pods to kill", func(ctx context.Context) error {
			return made(ctx, 1, system, webhookPods, nil)
		})
	}
	harness.Eventually(t, readyLimit, "the webhook enforces again", enforces)
	harness.Eventually(t, time.Minute, "drivers are admitted", l.recovered(driverPods, admitted))
	l.judge(t)
	outage := l.tallies[driverPods].outage
	t.Logf("%d kills in %v; no driver waited longer than %v", kills, limit, outage.Round(time.Millisecond))
	if outage > kubeletRetry {
		t.Errorf("a permitted driver was refused for %v", outage)
	}
	upgrade(t, "--set", "floor.mode=,webhook.failurePolicy=") // as without a preset
	harness.Eventually(t, readyLimit, "there is no floor", func(ctx context.Context) error {
		err := shared.Client.Get(ctx, client.ObjectKey{Name: floorName}, &admissionregistrationv1.ValidatingAdmissionPolicy{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("there is one: %w", errors.Join(err))
		}
		return enforces(ctx)
	})
}

// kubeletRetry is after what time a kubelet tries anew to make a pod that it could not make (backOffPeriod of Kubernetes' pkg/kubelet).
const kubeletRetry = 10 * time.Second
