//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// withoutAnImageNothingIsBlocked installs a release that cannot start, and removes it.
func withoutAnImageNothingIsBlocked(t *testing.T) {
	helm(t, "install", release, chart(), "--create-namespace", "--set=image.repository=registry.invalid/nobody/webhook,image.pullPolicy=Always")
	time.Sleep(15 * time.Second) // nothing happens, which takes as long as one cares to look
	for _, o := range []client.Object{
		pod("default", "nobody-refuses-yet", mounts(diskPipe), onWindows), daemonSet(pod("default", "nobody-refuses-yet", mounts(diskPipe), onWindows)),
	} {
		if err := shared.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := shared.Client.Get(t.Context(), client.ObjectKey{Name: webhook}, c); err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Webhooks {
		if len(w.Rules) > 0 {
			t.Errorf("%s has rules", w.Name)
		}
	}
	helm(t, "uninstall", release, "--wait", "--timeout=2m")
}

// changedConfigurations changes what belongs to the chart, and what belongs to the webhook.
func changedConfigurations(t *testing.T) {
	key := client.ObjectKey{Name: webhook}
	patch := func(text string) {
		t.Helper()
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook}}
		if err := shared.Client.Patch(t.Context(), c, client.RawPatch("application/json-patch+json", []byte(text))); err != nil {
			t.Fatal(err)
		}
	}
	patch(`[{"op":"remove","path":"/webhooks/0/rules"}]`)
	harness.Eventually(t, time.Minute, "the rules are back", func(ctx context.Context) error {
		c := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		err := shared.Client.Get(ctx, key, c)
		if err == nil && len(c.Webhooks[0].Rules) == 0 {
			err = errors.New("there are none")
		}
		return err
	})
	harness.Eventually(t, time.Minute, "that is an event", happened(webhook, "RulesRestored"))

	// As the admissions enforcer of AKS does.
	patch(`[{"op":"replace","path":"/webhooks/0/namespaceSelector","value":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system"]}]}}]`)
	harness.Eventually(t, time.Minute, "the selector is reported", happened(webhook, "ConfigurationChanged"))
	patch(`[{"op":"replace","path":"/webhooks/0/namespaceSelector","value":{}}]`)
	harness.Eventually(t, readyLimit, "the webhook enforces", enforces)
}

// happened says whether there is an event with a reason of an object of the cluster.
func happened(name, reason string) func(context.Context) error {
	return func(ctx context.Context) error {
		var all eventsv1.EventList
		if err := shared.Client.List(ctx, &all, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		for _, e := range all.Items {
			if e.Reason == reason && e.Regarding.Name == name {
				return nil
			}
		}
		return fmt.Errorf("none of %d events is %s of %s", len(all.Items), reason, name)
	}
}
