//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/e2e/cluster"
	"github.com/pipeguard/pipeguard/test/harness"
)

// warned collects the warnings that come with answers, as kubectl shows them.
type warned struct{ texts []string }

func (w *warned) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// theClusterSaysWhichPipesTheNodeServes sees the pipes of the real proxy in the node's report and in labels of its Node, and asks for one that it
// does not serve. A PipePolicy lets the pod have pipes of disks.
func theClusterSaysWhichPipesTheNodeServes(t *testing.T) {
	const served, missing = "csi-proxy-disk-v1", "csi-proxy-disk-v9"
	upgrade(t, "--set", "nodeLabels.enabled=true")
	harness.Eventually(t, readyLimit, "the webhook enforces", enforces)
	t.Run("report", func(t *testing.T) {
		harness.Eventually(t, readyLimit, "the node's report names its pipes", func(ctx context.Context) error {
			var report v1alpha1.GuardedNode
			err := shared.Client.Get(ctx, client.ObjectKey{Name: cluster.NodeName}, &report)
			if err == nil && (!slices.Contains(report.Pipes, served) || slices.Contains(report.Pipes, missing)) {
				err = fmt.Errorf("it names %q", report.Pipes)
			}
			return err
		})
	})
	t.Run("labels", func(t *testing.T) {
		harness.Eventually(t, readyLimit, "the Node is selected by a pipe", func(ctx context.Context) error {
			var nodes corev1.NodeList
			err := shared.Client.List(ctx, &nodes, client.MatchingLabels{v1alpha1.LabelPipePrefix + served: v1alpha1.LabelPipeServed, v1alpha1.LabelServesPipes: "true"})
			if err == nil && (len(nodes.Items) != 1 || nodes.Items[0].Name != cluster.NodeName) {
				err = fmt.Errorf("%d Nodes are", len(nodes.Items))
			}
			return err
		})
	})
	t.Run("warning", func(t *testing.T) {
		config, w := rest.CopyConfig(shared.Config), &warned{}
		config.WarningHandler = w
		asks, err := client.New(config, client.Options{Scheme: shared.Client.Scheme()})
		if err != nil {
			t.Fatal(err)
		}
		for pipe, want := range map[string]string{served: "", missing: `no node that reports serves pipe "` + missing + `": kubectl get guardednodes -o wide`} {
			harness.Eventually(t, readyLimit, "the answer about "+pipe, func(ctx context.Context) error {
				w.texts = nil
				if err := asks.Create(ctx, pod(storage, "asks", as(inventory, "main"), mounts(`\\.\pipe\`+pipe), onWindows), client.DryRunAll); err != nil {
					return err
				}
				if got := strings.Join(w.texts, "\n"); strings.Contains(got, "guardednodes") != (want != "") || !strings.Contains(got, want) {
					return fmt.Errorf("warnings %q, want %q", got, want)
				}
				return nil
			})
		}
	})
}
