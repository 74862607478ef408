//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/e2e/cluster"
	"github.com/pipeguard/pipeguard/test/harness"
)

// staticPod is a pod that only its node can stop. On Linux the path is a strange name for a directory.
const staticPod = `apiVersion: v1
kind: Pod
metadata: {namespace: default, name: static}
spec:
  containers:
    - name: main
      image: ` + cluster.ProgramImage + `
      volumeMounts: [{name: pipe, mountPath: /pipe}]
  volumes:
    - name: pipe
      hostPath: {path: '\\.\pipe\csi-proxy-disk-v1'}
`

func staticPodsAreReported(t *testing.T) {
	if err := shared.WriteStaticPod("static", staticPod); err != nil {
		t.Fatal(err)
	}
	mirror := pod("default", "static-"+cluster.NodeName)
	t.Cleanup(func() {
		if err := shared.RemoveStaticPod("static"); err != nil {
			t.Error(err)
		}
		harness.Eventually(t, readyLimit, "the mirror pod goes with the static pod", func(ctx context.Context) error {
			err := shared.Client.Get(ctx, client.ObjectKeyFromObject(mirror), mirror)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("it is there"), err)
		})
	})
	harness.Eventually(t, readyLimit, "the mirror pod is admitted", func(ctx context.Context) error {
		return shared.Client.Get(ctx, client.ObjectKeyFromObject(mirror), mirror)
	})
	mirror.ResourceVersion, mirror.UID, mirror.OwnerReferences = "", "", nil
	mirror.Name = "no-mirror"
	mustRefuse(t, mirror, "PG0") // the same, but not from a node

	// A new policy starts a scan.
	policy := &v1alpha1.PipePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "starts-a-scan"},
		Spec:       v1alpha1.PipePolicySpec{Pipes: []v1alpha1.PipePattern{"nothing-has-this-name"}},
	}
	t.Cleanup(func() { remove(t, policy) })
	harness.Eventually(t, readyLimit, "a policy is stored", func(ctx context.Context) error { return shared.Client.Create(ctx, policy) })
	harness.Eventually(t, readyLimit, "it is reported", reported("default", func(r v1alpha1.ReportResult) bool {
		return r.Subject.Name == "static-"+cluster.NodeName && r.StaticPod && r.Effect == "deny"
	}))
	harness.Eventually(t, readyLimit, "the pod that is older than the webhook is reported", reported(olderNamespace, func(r v1alpha1.ReportResult) bool {
		return r.Subject.Name == "older" && r.Effect == "deny"
	}))
}

// reported asks that a report of the namespace has a result.
func reported(namespace string, is func(v1alpha1.ReportResult) bool) func(context.Context) error {
	return func(ctx context.Context) error {
		var reports v1alpha1.PipeReportList
		if err := shared.Client.List(ctx, &reports, client.InNamespace(namespace)); err != nil {
			return err
		}
		results := 0
		for _, report := range reports.Items {
			for _, r := range report.Results {
				if is(r) {
					return nil
				}
				results++
			}
		}
		return fmt.Errorf("none of %d results in %d reports of %s", results, len(reports.Items), namespace)
	}
}
