//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/e2e/cluster"
	"github.com/pipeguard/pipeguard/test/harness"
)

const (
	release = "pipeguard"
	system  = "pipeguard-system"
	webhook = "pipeguard-webhook"

	// readyLimit is long, because the machine may be busy: usually a pod is ready within ten seconds.
	readyLimit = 3 * time.Minute
)

// webhookPods are the labels of the webhook's pods.
var webhookPods = client.MatchingLabels{"app.kubernetes.io/instance": release, "app.kubernetes.io/component": "webhook"}

// replicas is the number of pods that the chart runs without values.
const replicas = 2

func chart() string { return filepath.Join(harness.Root(), "charts", "pipeguard") }

// helm runs helm in the release's namespace.
func helm(t *testing.T, args ...string) string {
	t.Helper()
	out, err := shared.Helm(t.Context(), append([]string{"--namespace=" + system}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// upgrade changes values of the release and keeps the others.
func upgrade(t *testing.T, args ...string) {
	t.Helper()
	helm(t, append([]string{"upgrade", release, chart(), "--reset-then-reuse-values", "--wait", "--timeout=3m"}, args...)...)
}

// importImage gives the node the image that `make image` has made.
func importImage(t *testing.T) {
	t.Helper()
	if err := shared.Import(t.Context(), cluster.WebhookArchive()); err != nil {
		t.Fatal(err)
	}
}

// enforces asks that all pods are ready, which they are only while they enforce, and that each configuration trusts them. With a floor, that
// refuses first.
func enforces(ctx context.Context) error {
	if err := ready(system, replicas, webhookPods)(ctx); err != nil {
		return err
	}
	for _, name := range []string{"pipeguard-webhook", "pipeguard-policies"} {
		var configuration admissionregistrationv1.ValidatingWebhookConfiguration
		if err := shared.Client.Get(ctx, client.ObjectKey{Name: name}, &configuration); err != nil {
			return err
		}
		for _, w := range configuration.Webhooks {
			if !bytes.Contains(w.ClientConfig.CABundle, []byte("BEGIN CERTIFICATE")) {
				return fmt.Errorf("webhook %s has no caBundle", w.Name)
			}
		}
	}
	probe := pod("default", "probe", mounts(diskPipe), onWindows)
	err := shared.Client.Create(ctx, probe, client.DryRunAll)
	if v := verdictOf(err); v != refused && v != floored {
		return fmt.Errorf("a pod with a pipe is %s: %w", v, errors.Join(err))
	}
	return nil
}

// webhookUIDs names the webhook's pods as they are now.
func webhookUIDs(t *testing.T) map[string]bool {
	t.Helper()
	var pods corev1.PodList
	if err := shared.Client.List(t.Context(), &pods, client.InNamespace(system), webhookPods); err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, p := range pods.Items {
		all[string(p.UID)] = true
	}
	return all
}

// deleteWebhookPods deletes all or one of the webhook's pods without a grace period.
func deleteWebhookPods(t *testing.T, all bool) {
	t.Helper()
	var pods corev1.PodList
	if err := shared.Client.List(t.Context(), &pods, client.InNamespace(system), webhookPods); err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) == 0 {
		t.Fatal("there are no pods of the webhook")
	}
	for i := range pods.Items {
		if all || i == 0 {
			remove(t, &pods.Items[i])
		}
	}
}
