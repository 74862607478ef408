//go:build e2e

package e2e_test

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/test/harness"
)

// olderNamespace has what was there before the webhook.
const olderNamespace = "older"

// before makes what is there before the chart is installed: a pod that declares a pipe, which nobody refused.
func before(t *testing.T) {
	windowsNode(t)
	namespace(t, olderNamespace)
	older := pod(olderNamespace, "older", declares(diskPipe), onWindows)
	if err := shared.Client.Create(t.Context(), older); err != nil {
		t.Fatalf("without the webhook, a pod with a pipe: %v", err)
	}
	importImage(t)
}

func installs(t *testing.T) {
	out := helm(t, "install", release, chart(), "--create-namespace", "--wait", "--timeout=3m")
	if !strings.Contains(out, "helm test") {
		t.Errorf("the notes do not say how to test the release:\n%s", out)
	}
	harness.Eventually(t, readyLimit, "the webhook enforces", enforces)
}

func helmTestPasses(t *testing.T) {
	out := helm(t, "test", release, "--timeout=2m")
	if !strings.Contains(out, "Succeeded") {
		t.Errorf("no test succeeded:\n%s", out)
	}
}
