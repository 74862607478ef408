//go:build e2e

package e2e_test

import (
	"testing"
	"time"
)

func nothingSlipsThrough(t *testing.T) {
	l := startLoad(t, everything...)
	eventually(t, readyLimit, "driver pods are admitted", l.recovered(driverPods, admitted))

	deleteWebhookPods(t, false)
	eventually(t, readyLimit, "one pod deleted: all enforce again", enforces)

	if killed := shared.Kill("webhook"); killed != replicas {
		t.Errorf("%d processes killed, want %d", killed, replicas)
	}
	eventually(t, readyLimit, "every process killed: all enforce again", enforces)

	deleteWebhookPods(t, true)
	eventually(t, readyLimit, "every pod deleted: all enforce again", enforces)

	eventually(t, time.Minute, "driver pods are admitted again", l.recovered(driverPods, admitted))
	eventually(t, time.Minute, "evil pods are refused again", l.recovered(evilPods, refused))
	l.judge(t)
}
