//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/e2e/cluster"
	"github.com/pipeguard/pipeguard/test/harness"
)

// debug runs `kubectl debug` on a pod and does not attach. custom is what is added to the container, as JSON.
func debug(t *testing.T, namespace, pod, custom string) error {
	t.Helper()
	file := filepath.Join(t.TempDir(), "custom.json")
	if err := os.WriteFile(file, []byte(custom), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := shared.Kubectl(t.Context(), "debug", "--namespace="+namespace, pod, "--image="+cluster.ProgramImage,
		"--container=debugger", "--custom="+file)
	return err
}

const (
	withoutMount = `{"env": [{"name": "HERE", "value": "yes"}]}`
	withVolume   = `{"volumeMounts": [{"name": "volume-a", "mountPath": "/pipe"}]}`
)

func debugContainersGetNoPipe(t *testing.T) {
	plain := pod("default", "debugged")
	mustAdmit(t, plain)
	harness.Eventually(t, readyLimit, "the pod runs", running(plain))
	if err := debug(t, plain.Namespace, plain.Name, withoutMount); err != nil {
		t.Errorf("an ordinary pod cannot be debugged: %v", err)
	}
	harness.Eventually(t, readyLimit, "the debug container runs", func(ctx context.Context) error {
		var now corev1.Pod
		if err := shared.Client.Get(ctx, client.ObjectKeyFromObject(plain), &now); err != nil {
			return err
		}
		for _, c := range now.Status.EphemeralContainerStatuses {
			if c.State.Running != nil {
				return nil
			}
		}
		return errors.New("no ephemeral container runs")
	})
	mustNotDebug(t, olderNamespace, "older", "PG001")
}

func debugContainersOfDriversGetNoPipe(t *testing.T) {
	p := driverPod("driver", unscheduled)
	mustAdmit(t, p)
	mustNotDebug(t, p.Namespace, p.Name, "PG010")
}

// mustNotDebug expects that a debug container with the pod's first volume is refused.
func mustNotDebug(t *testing.T, namespace, pod, code string) {
	t.Helper()
	err := debug(t, namespace, pod, withVolume)
	if verdictOf(err) != refused || !strings.Contains(err.Error(), code) || !strings.Contains(err.Error(), "spec.ephemeralContainers[0]") {
		t.Errorf("a debug container with the pipe is %v, want a refusal with %s", err, code)
	}
}
