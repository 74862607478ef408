//go:build e2e

package e2e_test

import (
	"context"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
)

// breakGlass does what the chart's README tells an operator who cannot wait for the webhook.
func breakGlass(t *testing.T) {
	scale(t, "0")
	harness.Eventually(t, readyLimit, "no pod of the webhook is left", ready(system, 0, webhookPods))
	blocked := pod("default", "blocked", mounts(diskPipe), onWindows)
	if v := verdictOf(shared.Client.Create(t.Context(), blocked)); v != unreachable {
		t.Errorf("without the webhook, a pod with a pipe is %s, want %s", v, unreachable)
	}

	if _, err := deleteGuard(t); err == nil {
		t.Error("whoever is bound to nothing can turn the guard off")
	}
	mustAdmit(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "on-call"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "pipeguard-break-glass"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "on-call"}},
	})
	harness.Eventually(t, time.Minute, "whoever is on call turns the guard off", func(context.Context) error {
		_, err := deleteGuard(t)
		return err
	})
	harness.Eventually(t, time.Minute, "pods with pipes are created again", func(ctx context.Context) error {
		return shared.Client.Create(ctx, blocked)
	})
	t.Cleanup(func() { remove(t, blocked) })

	upgrade(t)
	scale(t, "2")
	harness.Eventually(t, readyLimit, "the guard is on again", enforces)
	harness.Eventually(t, readyLimit, "what was created meanwhile is reported", reported("default", func(r v1alpha1.ReportResult) bool {
		return r.Subject.Name == "blocked" && r.Effect == "deny"
	}))
}

// deleteGuard deletes the configuration as somebody who is on call.
func deleteGuard(t *testing.T) (string, error) {
	return shared.Kubectl(t.Context(), "--as=on-call", "delete", "validatingwebhookconfiguration", "pipeguard-webhook")
}

func scale(t *testing.T, n string) {
	t.Helper()
	if _, err := shared.Kubectl(t.Context(), "--namespace="+system, "scale", "deployment/"+webhook, "--replicas="+n); err != nil {
		t.Fatal(err)
	}
}
