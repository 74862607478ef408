//go:build !windows

package integration

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// empty is an API server without definitions, which no other test has.
type empty struct {
	*testing.T
	api *cluster.APIServer
}

func startEmpty(t *testing.T) empty {
	t.Helper()
	t.Parallel()
	dir, err := os.MkdirTemp(shared.dir, "empty-")
	if err != nil {
		t.Fatal(err)
	}
	api, err := cluster.StartAPIServer(context.WithoutCancel(t.Context()), cluster.APIServerOptions{Tools: shared.tools, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	return empty{t, api}
}

// helm runs helm, which must succeed.
func (b empty) helm(args ...string) {
	b.Helper()
	if _, err := b.api.Helm(b.Context(), shared.tools, args...); err != nil {
		b.Fatal(err)
	}
}

// definitions are the values of helm.sh/resource-policy of the CRDs that are there, by the CRD's name.
func (b empty) definitions() map[string]string {
	b.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := b.api.Client.List(b.Context(), &list, client.MatchingLabels{"app.kubernetes.io/part-of": "pipeguard"}); err != nil {
		b.Fatal(err)
	}
	found := map[string]string{}
	for _, d := range list.Items {
		found[d.GetName()] = d.GetAnnotations()["helm.sh/resource-policy"]
	}
	return found
}

// keeps asks that every CRD of the chart is there and says, or does not say, that it stays.
func (b empty) keeps(when, policy string) {
	b.Helper()
	found := b.definitions()
	if len(found) != 5 {
		b.Errorf("%s there are the CRDs %q", when, found)
	}
	for name, got := range found {
		if got != policy {
			b.Errorf("%s %s has the policy %q, want %q", when, name, got, policy)
		}
	}
}

// earlier is the chart as it was when CRDs went with the release.
func earlier(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pipeguard")
	if err := os.CopyFS(dir, os.DirFS(cluster.ChartDir())); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "values.yaml")
	text, err := os.ReadFile(file)
	if err != nil || bytes.Count(text, []byte("\n  keep: true\n")) != 1 {
		t.Fatalf("no value keep in %s: %v", file, err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte("\n  keep: true\n"), []byte("\n  keep: false\n"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestPoliciesOutliveTheirRelease(t *testing.T) {
	b := startEmpty(t)
	chart, in := cluster.ChartDir(), []string{"--namespace", cluster.Namespace, "--create-namespace"}
	b.helm(append([]string{"install", "pipeguard", earlier(t)}, in...)...)
	b.keeps("by the chart of before", "")
	b.helm("upgrade", "pipeguard", chart, "--namespace", cluster.Namespace, "--reset-then-reuse-values")
	b.keeps("after an upgrade", "keep")

	b.helm("uninstall", "pipeguard", "--namespace", cluster.Namespace)
	b.keeps("after the release", "keep")
	var d appsv1.Deployment
	if err := b.api.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: "pipeguard-webhook"}, &d); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment of the release that is gone: %v", err)
	}
	policy := &v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: "stays"}, Spec: v1alpha1.PipePolicySpec{Pipes: []v1alpha1.PipePattern{"a"}}}
	if err := b.api.Client.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}

	other := []string{"install", "guard", chart, "--namespace", "guard", "--create-namespace"}
	if _, err := b.api.Helm(t.Context(), shared.tools, other...); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
		t.Errorf("a release of another name takes the CRDs over: %v", err)
	}
	b.helm(append([]string{"install", "pipeguard", chart}, in...)...)
	b.isThere(policy)
	b.helm("uninstall", "pipeguard", "--namespace", cluster.Namespace)

	b.helm(append(slices.Clone(other), "--set", "crds.install=false")...)
	b.helm("uninstall", "guard", "--namespace", "guard")
	b.keeps("after a release without CRDs", "keep")
	b.helm(append(slices.Clone(other), "--take-ownership")...)
	b.isThere(policy)
	b.helm("uninstall", "guard", "--namespace", "guard")
	b.isThere(policy)

	k, err := b.api.Kubectl(shared.tools, rest.CopyConfig(b.api.Config))
	if err != nil {
		t.Fatal(err)
	}
	if _, stderr, code, err := k.Run(t.Context(), "", "delete", "crds", "-l", "app.kubernetes.io/part-of=pipeguard"); err != nil || code != 0 {
		t.Errorf("%d, %v: %s", code, err, stderr)
	}
	if left := b.definitions(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func (b empty) isThere(policy *v1alpha1.PipePolicy) {
	b.Helper()
	var got v1alpha1.PipePolicy
	if err := b.api.Client.Get(b.Context(), client.ObjectKeyFromObject(policy), &got); err != nil || got.UID != policy.UID {
		b.Errorf("the policy is another, or gone: %v", err)
	}
}

// What test/chart reads by its types the API server judges: ranges, lists that say a thing twice, owners of fields.
func TestTheAPIServerTakesWhatOperatorsSet(t *testing.T) {
	b := startEmpty(t)
	everything := filepath.Join(harness.Root(), "test", "chart", "testdata", "everything.yaml")
	values := [][]string{
		nil,
		{"--set", "nodeSelector=null,tolerations=null,resources=null,affinity=null,securityContext=null,podSecurityContext=null,image.tag=null,priorityClassName=null"},
		{"--set", "hostNetwork=true,webhook.port=19443,webhook.metricsPort=18080,webhook.healthPort=18081"},
		{"--set-string", "webhook.port=10250,podDisruptionBudget.maxUnavailable=1"},
		{"--set", "hostNetwork=true,dnsPolicy=Default,replicas=1"},
		{"--values", everything, "--set", "certificates.certManager.enabled=false,serviceMonitor.enabled=false,prometheusRule.enabled=false,node.podMonitor.enabled=false,fullnameOverride="},
		nil,
	}
	for _, name := range []string{"guard-nodes", "guard-bundles"} {
		if err := b.api.EnsureNamespace(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	for i, args := range values {
		do := []string{"upgrade", "pipeguard", cluster.ChartDir(), "--namespace", cluster.Namespace, "--reset-values"}
		if i == 0 {
			do = []string{"install", "pipeguard", cluster.ChartDir(), "--namespace", cluster.Namespace, "--create-namespace"}
		}
		b.helm(append(do, args...)...)
		var d appsv1.Deployment
		if err := b.api.Client.Get(t.Context(), client.ObjectKey{Namespace: cluster.Namespace, Name: "pipeguard-webhook"}, &d); err != nil {
			t.Fatal(err)
		}
		pod := d.Spec.Template.Spec
		if isHost := strings.Contains(strings.Join(args, " "), "hostNetwork=true"); pod.HostNetwork != isHost || (len(pod.NodeSelector) == 0) != (i == 1) {
			t.Errorf("%q: the network of nodes: %t, nodes: %v", args, pod.HostNetwork, pod.NodeSelector)
		}
	}
}
