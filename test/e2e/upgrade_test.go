//go:build e2e

package e2e_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

func upgradeAndRollbackLeaveNoGap(t *testing.T) {
	before := webhookImage(t)
	const tag = "another"
	after := before[:strings.LastIndex(before, ":")+1] + tag
	if err := shared.Tag(t.Context(), before, after); err != nil {
		t.Fatal(err)
	}
	l := startLoad(t, everything...)

	upgrade(t, "--set", "image.tag="+tag, "--set", "scanInterval=1m")
	harness.Eventually(t, readyLimit, "upgraded", enforces)
	if image := webhookImage(t); image != after {
		t.Errorf("after the upgrade the image is %s, want %s", image, after)
	}
	if config := webhookConfig(t); !strings.Contains(config, "scanInterval: 1m\n") {
		t.Errorf("after the upgrade the configuration is\n%s", config)
	}

	helm(t, "rollback", release, "--wait", "--timeout=3m")
	harness.Eventually(t, readyLimit, "rolled back", enforces)
	if image := webhookImage(t); image != before {
		t.Errorf("after the rollback the image is %s, want %s", image, before)
	}
	harness.Eventually(t, readyLimit, "the driver is still allowed", admitsDriver)
	l.judge(t)
	// No pod went before its successor enforced, so no request was lost.
	for _, k := range []kind{driverPods, evilPods} {
		if n := l.tallies[k].counts[unreachable]; n > 0 {
			t.Errorf("%d requests for %s found no webhook: %s", n, k, l.tallies[k].lost)
		}
	}
}

func webhookTemplate(t *testing.T) corev1.PodTemplateSpec {
	t.Helper()
	var d appsv1.Deployment
	if err := shared.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: webhook}, &d); err != nil {
		t.Fatal(err)
	}
	return d.Spec.Template
}

func webhookImage(t *testing.T) string { return webhookTemplate(t).Spec.Containers[0].Image }
func webhookConfig(t *testing.T) string {
	return webhookTemplate(t).Annotations["pipeguard.dev/webhook-config"]
}
