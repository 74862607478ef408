//go:build !windows

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

func TestAPodIsToldThatNoNodeServesItsPipe(t *testing.T) {
	guarded(t)
	admin, warned := warnings(t)
	const how = ": kubectl get guardednodes -o wide"
	// told waits until the creation of a pod that mounts the pipe csi-proxy-filesystem-v1 is warned about like this; empty means not at all.
	told := func(what, node, want string) {
		t.Helper()
		eventually(t, what, func(ctx context.Context) error {
			warned.texts = nil
			o := pod(drivers, driver, pipe)
			o.Spec.NodeName = node
			if err := admin.Create(ctx, o, client.DryRunAll); err != nil {
				return err
			}
			got := slices.DeleteFunc(warned.texts, func(text string) bool { return !strings.Contains(text, "guardednodes") })
			if strings.Join(got, "\n") != want {
				return fmt.Errorf("warnings %q, want %q", got, want)
			}
			return nil
		})
	}
	const none = `Pipeguard: no node that reports serves pipe "csi-proxy-filesystem-v1"` + how
	told("no node reports", "", "")
	one, other := said("win-one"), said("win-other")
	one.Pipes = []string{"csi-proxy-disk-v1"}
	created(t, one)
	deleted(t, one, other)
	told("no node serves it", "", none)
	told("its node does not serve it", one.Name, `Pipeguard: pipe "csi-proxy-filesystem-v1" is not served on node "win-one"`+how)
	told("nothing is known of its node", other.Name, "")
	created(t, other)
	told("another is of an earlier release", "", "")
	changed(t, other, func() { other.Pipes = []string{} })
	told("it is upgraded, and serves nothing", "", none)
	changed(t, other, func() { other.Pipes = []string{"csi-proxy-filesystem-v1"} })
	told("it serves it", "", "")
	told("its node serves it", other.Name, "")
	if err := at(t).api.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	told("it is gone", "", none)

	kubectl, err := at(t).api.Kubectl(shared.tools, at(t).api.Config)
	if err != nil {
		t.Fatal(err)
	}
	out, _, _, err := kubectl.Run(t.Context(), "", "get", "guardednodes", "-o", "wide")
	if err != nil || !strings.Contains(out, "PIPES") || !strings.Contains(out, `["csi-proxy-disk-v1"]`) {
		t.Errorf("kubectl: %v\n%s", err, out)
	}
}

// labelling has the site's release label Nodes for the time of a test, with the rights that the chart gives for that.
func labelling(t *testing.T) *cluster.Release {
	t.Helper()
	release, ctx := guarded(t), context.WithoutCancel(t.Context())
	chart := rendered(t, "nodeLabels.enabled=true")
	t.Cleanup(func() {
		if err := release.Upgrade(ctx, nil, 1); err != nil {
			t.Error(err)
		}
	})
	applied := 0
	for _, o := range chart.Kinds("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding") {
		if strings.HasSuffix(o.GetName(), "-node-labels") {
			created(t, o)
			deleted(t, o)
			applied++
		}
	}
	if applied != 2 {
		t.Fatalf("the chart has %d objects about labels of Nodes", applied)
	}
	config := filepath.Join(t.TempDir(), "webhook.yaml")
	if err := cluster.WriteWebhookConfig(config, "cluster: {labelNodes: true}"); err != nil {
		t.Fatal(err)
	}
	if err := release.Upgrade(ctx, chart, 1, "--config", config); err != nil {
		t.Fatal(err)
	}
	return release
}

func TestNodesSayInLabelsWhichPipesTheyServe(t *testing.T) {
	release := labelling(t)
	one, old := said("win-one"), said("win-old")
	one.Pipes = []string{"csi-proxy-disk-v1", "csi-proxy-volume-v1"}
	for _, report := range []*v1alpha1.GuardedNode{one, old} {
		machine := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: report.Name, Labels: map[string]string{"team": "storage"}}}
		created(t, machine, report)
		deleted(t, report, machine)
	}
	node := &corev1.Node{}
	get := func(ctx context.Context, name string) error {
		node = &corev1.Node{}
		return at(t).api.Client.Get(ctx, client.ObjectKey{Name: name}, node)
	}
	eventually(t, "the Node has labels", func(ctx context.Context) error {
		if err := get(ctx, one.Name); err != nil {
			return err
		}
		want := map[string]string{
			"team": "storage", v1alpha1.LabelServesPipes: "true", v1alpha1.LabelPipePrefix + "csi-proxy-disk-v1": "served", v1alpha1.LabelPipePrefix + "csi-proxy-volume-v1": "served",
		}
		if fmt.Sprint(node.Labels) != fmt.Sprint(want) {
			return fmt.Errorf("labels %v, want %v", node.Labels, want)
		}
		return nil
	})
	var selected corev1.NodeList
	if err := at(t).api.Client.List(t.Context(), &selected, client.MatchingLabels{v1alpha1.LabelPipePrefix + "csi-proxy-disk-v1": v1alpha1.LabelPipeServed}); err != nil || len(selected.Items) != 1 || selected.Items[0].Name != one.Name {
		t.Errorf("%d Nodes are selected, %v", len(selected.Items), err)
	}
	if err := get(t.Context(), old.Name); err != nil || len(node.Labels) != 1 {
		t.Errorf("a node of an earlier release: %v, %v", node.Labels, err)
	}

	// What else the right to patch Nodes would permit, the API server refuses.
	leader := newClient(t, release.Config)
	patch := func(ctx context.Context, text string, opts ...client.PatchOption) error {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
		o.Name = one.Name
		return leader.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(text)), append(opts, client.DryRunAll)...)
	}
	for name, text := range map[string]string{
		"another label":           `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":""}}}`,
		"a label of another":      `{"metadata":{"labels":{"team":"other"}}}`,
		"the end of another's":    `{"metadata":{"labels":{"team":null}}}`,
		"a prefix that begins so": `{"metadata":{"labels":{"pipe.pipeguard.dev.example.com/a":"served"}}}`,
		"an annotation":           `{"metadata":{"annotations":{"a":"b"}}}`,
		"a finalizer":             `{"metadata":{"finalizers":["example.com/a"]}}`,
		"an owner":                `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"a","uid":"b"}]}}`,
		"unschedulable":           `{"spec":{"unschedulable":true}}`,
		"a taint":                 `{"spec":{"taints":[{"key":"a","effect":"NoExecute"}]}}`,
		"both":                    `{"metadata":{"labels":{"pipe.pipeguard.dev/a":"served"}},"spec":{"unschedulable":true}}`,
	} {
		if err := patch(t.Context(), text); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "the webhook changes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"a label":        `{"metadata":{"labels":{"pipe.pipeguard.dev/a":"served"}}}`,
		"the end of all": `{"metadata":{"labels":{"pipeguard.dev/serves-pipes":null,"pipe.pipeguard.dev/csi-proxy-disk-v1":null,"pipe.pipeguard.dev/csi-proxy-volume-v1":null}}}`,
	} {
		if err := patch(t.Context(), text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, do := range map[string]func(context.Context) error{
		"updates": func(ctx context.Context) error { return leader.Update(ctx, node, client.DryRunAll) },
		"deletes": func(ctx context.Context) error { return leader.Delete(ctx, node, client.DryRunAll) },
		"patches the status": func(ctx context.Context) error {
			return leader.Status().Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Running"}}`)))
		},
	} {
		if err := do(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("it %s: %v", name, err)
		}
	}
	if err := get(t.Context(), one.Name); err != nil {
		t.Fatal(err)
	}
	changed(t, node, func() { node.Spec.Unschedulable = true }) // as others do
}
