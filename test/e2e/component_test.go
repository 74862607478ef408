//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// componentNamespace is where the node component's pods are.
const componentNamespace = "pipeguard-node"

// nodeComponentPassesAlone turns the node component on where HostProcess containers are refused: its own pods pass, by its
// service account, and the same pods under another one do not.
func nodeComponentPassesAlone(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: componentNamespace}}
	if err := shared.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	defer remove(t, namespace)
	defer upgrade(t, "--set", "node.enabled=false", "--set", "parameters.hostProcess=Audit")
	// Without --wait: the node with Windows is only an object, so that no pod of the component ever runs.
	helm(t, "upgrade", release, chart(), "--reset-then-reuse-values", "--set", "node.enabled=true", "--set", "node.namespace="+componentNamespace, "--set", "parameters.hostProcess=Deny")

	var d appsv1.DaemonSet
	harness.Eventually(t, readyLimit, "the DaemonSet is there", func(ctx context.Context) error {
		return shared.Client.Get(ctx, client.ObjectKey{Namespace: componentNamespace, Name: "pipeguard-node"}, &d)
	})
	asked := 0
	try := func(ctx context.Context, account string) verdict {
		asked++
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: componentNamespace, Name: fmt.Sprintf("asked-%d", asked)}, Spec: *d.Spec.Template.Spec.DeepCopy()}
		p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = account, ""
		return verdictOf(shared.Client.Create(ctx, p, client.DryRunAll))
	}
	own := d.Spec.Template.Spec.ServiceAccountName
	// The webhook reads its parameters again when the kubelet has brought them.
	harness.Eventually(t, readyLimit, "other HostProcess containers are refused, and the component's are not", func(ctx context.Context) error {
		if v := try(ctx, "default"); v != refused {
			return fmt.Errorf("a HostProcess pod of the default service account is %s", v)
		}
		if v := try(ctx, own); v != admitted {
			return errors.New("the component's own pod is " + string(v))
		}
		return nil
	})
}
