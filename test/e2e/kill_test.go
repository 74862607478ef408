//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

func nothingSlipsThrough(t *testing.T) {
	l := startLoad(t, everything...)
	harness.Eventually(t, readyLimit, "driver pods are admitted", l.recovered(driverPods, admitted))

	deleteWebhookPods(t, false)
	harness.Eventually(t, readyLimit, "one pod deleted: all enforce again", enforces)

	if killed := shared.Kill("webhook"); killed != replicas {
		t.Errorf("%d processes killed, want %d", killed, replicas)
	}
	harness.Eventually(t, readyLimit, "every process killed: all enforce again", enforces)

	deleteWebhookPods(t, true)
	harness.Eventually(t, readyLimit, "every pod deleted: all enforce again", enforces)

	harness.Eventually(t, time.Minute, "driver pods are admitted again", l.recovered(driverPods, admitted))
	harness.Eventually(t, time.Minute, "evil pods are refused again", l.recovered(evilPods, refused))
	l.judge(t)
}
