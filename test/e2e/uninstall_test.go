//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
)

// kept is a policy that outlives its release.
var kept = &v1alpha1.PipePolicy{
	ObjectMeta: metav1.ObjectMeta{Name: "outlives-its-release"},
	Spec:       v1alpha1.PipePolicySpec{Pipes: []v1alpha1.PipePattern{"nothing-has-this-name"}},
}

func uninstallLeavesPolicies(t *testing.T) {
	left, err := leftovers(t.Context())
	if err != nil || len(left) < 20 {
		t.Fatalf("the search finds only %q of an installed release: %v", left, err)
	}
	harness.Eventually(t, readyLimit, "a policy is stored", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(shared.Client.Create(ctx, kept.DeepCopy()))
	})
	upgrade(t, withFloor...)
	harness.Eventually(t, readyLimit, "the floor refuses", isFloored)
	l := startLoad(t, undisturbed...)
	helm(t, "uninstall", release, "--wait", "--timeout=2m")
	removeOwn(t)
	evil := pod("default", "nobody-refuses", mounts(diskPipe), onWindows)
	harness.Eventually(t, readyLimit, "nothing refuses any more", func(ctx context.Context) error { return shared.Client.Create(ctx, evil) })
	t.Cleanup(func() { remove(t, evil) })
	harness.Eventually(t, 2*time.Minute, "nothing is left but CRDs and what is of them", func(ctx context.Context) error {
		left, err := leftovers(ctx)
		return errors.Join(err, none(slices.DeleteFunc(left, isKept)))
	})
	if err := shared.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept.DeepCopy()); err != nil {
		t.Errorf("the policy is gone with the release: %v", err)
	}
	l.judge(t)
	plain := pod("default", "after")
	mustAdmit(t, plain)
	harness.Eventually(t, readyLimit, "ordinary pods run", running(plain))
}

func removalLeavesNothing(t *testing.T) {
	helm(t, "uninstall", release, "--wait", "--timeout=2m")
	removeOwn(t)
	if _, err := shared.Shell(t.Context(), "kubectl delete crds -l app.kubernetes.io/part-of=pipeguard"); err != nil {
		t.Error(err)
	}
	harness.Eventually(t, 2*time.Minute, "nothing is left", func(ctx context.Context) error {
		left, err := leftovers(ctx)
		return errors.Join(err, none(left))
	})
}

// removeOwn deletes what a release was not installed with: the operator's keys, bundles, which nodes may still read, and what the witness
// remembers, without which logs would start over.
func removeOwn(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"secrets", keySecret, witnessSecret}, {"configmaps", "--selector=app.kubernetes.io/component=bundle"}, {"configmaps", "--selector=app.kubernetes.io/component=witness"},
	} {
		if _, err := shared.Kubectl(t.Context(), append([]string{"--namespace=" + system, "delete", "--ignore-not-found"}, args...)...); err != nil {
			t.Error(err)
		}
	}
}

func none(left []string) error {
	if len(left) > 0 {
		return fmt.Errorf("left: %s", strings.Join(left, ", "))
	}
	return nil
}

// isKept says whether what was found is a CRD of the chart, what the API server makes of it, or an object of its kinds.
func isKept(found string) bool {
	kind, name, _ := strings.Cut(found, " ")
	return slices.Contains([]string{"PipePolicy", "PolicyModule", "PipeReport", "ClusterPipeReport", "GuardedNode"}, kind) ||
		(kind == "CustomResourceDefinition" || kind == "APIService") && strings.HasSuffix(name, ".pipeguard.dev")
}

// passing are resources whose objects go by themselves, or are made of others.
var passing = []string{"events", "componentstatuses"}

// leftovers names every object in the cluster that belongs to the release by a label, by its name or by its namespace.
func leftovers(ctx context.Context) ([]string, error) {
	resources, err := discovery.NewDiscoveryClientForConfigOrDie(shared.Config).ServerPreferredResources()
	if err != nil {
		return nil, fmt.Errorf("list the resources of the cluster: %w", err)
	}
	var found []string
	for _, group := range resources {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, r := range group.APIResources {
			if !slices.Contains(r.Verbs, "list") || slices.Contains(passing, r.Name) {
				continue
			}
			var objects metav1.PartialObjectMetadataList
			objects.SetGroupVersionKind(gv.WithKind(r.Kind + "List"))
			err := shared.Client.List(ctx, &objects, &client.ListOptions{})
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue // a definition that has just gone
			}
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", r.Name, err)
			}
			for _, o := range objects.Items {
				if belongs(r.Kind, &o) {
					found = append(found, fmt.Sprintf("%s %s/%s", r.Kind, o.Namespace, o.Name))
				}
			}
		}
	}
	return found, nil
}

func belongs(kind string, o client.Object) bool {
	// What every namespace has, and the namespace, which is the operator's.
	if kind == "Namespace" || o.GetName() == "default" || o.GetName() == "kube-root-ca.crt" {
		return false
	}
	labels := o.GetLabels()
	return o.GetNamespace() == system || strings.Contains(o.GetName(), "pipeguard") ||
		labels["app.kubernetes.io/instance"] == release || labels["app.kubernetes.io/managed-by"] == "pipeguard" || labels["owner"] == "helm"
}
