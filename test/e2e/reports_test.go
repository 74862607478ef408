//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/harness"
)

// standardReportsWhileWanted turns standard reports on before their kind is there, and off again.
func standardReportsWhileWanted(t *testing.T) {
	recorded := pod("default", "is-recorded", mounts(`C:\Windows`), onWindows)
	mustAdmit(t, recorded)
	upgrade(t, "--set", "reports.standard=PolicyReport")
	harness.Eventually(t, readyLimit, "without the kind the webhook enforces", enforces)

	definitions := filepath.Join(harness.Root(), "internal", "controller", "scan", "testdata", "crds")
	kubectl := func(args ...string) string {
		t.Helper()
		out, err := shared.Kubectl(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, name := range []string{"wgpolicyk8s.io_policyreports.yaml", "wgpolicyk8s.io_clusterpolicyreports.yaml"} {
		kubectl("apply", "--filename="+filepath.Join(definitions, name))
	}
	kubectl("wait", "--for=condition=Established", "--timeout=1m", "crd/policyreports.wgpolicyk8s.io", "crd/clusterpolicyreports.wgpolicyk8s.io")
	scan := &v1alpha1.PipePolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "starts-a-scan-for-standard-reports"},
		Spec:       v1alpha1.PipePolicySpec{Pipes: []v1alpha1.PipePattern{"nothing-has-this-name-either"}},
	}
	harness.Eventually(t, readyLimit, "a new policy starts a scan", func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(shared.Client.Create(ctx, scan.DeepCopy()))
	})
	harness.Eventually(t, 2*time.Minute, "kubectl shows the finding", func(ctx context.Context) error {
		out, err := shared.Kubectl(ctx, "--namespace=default", "get", "policyreport", "pipeguard",
			`--output=jsonpath={range .results[*]}{.source} {.result} {.resources[0].name}{"\n"}{end}`)
		if err == nil && !strings.Contains(out, "pipeguard warn "+recorded.Name+"\n") {
			err = fmt.Errorf("it shows:\n%s", out)
		}
		return err
	})

	upgrade(t, "--set", "reports.standard=None")
	harness.Eventually(t, 3*time.Minute, "the cluster has removed the reports", func(ctx context.Context) error {
		out, err := shared.Kubectl(ctx, "get", "policyreports,clusterpolicyreports", "--all-namespaces", "--output=name")
		if err == nil && strings.TrimSpace(out) != "" {
			err = errors.New(out)
		}
		return err
	})
	kubectl("delete", "crd", "policyreports.wgpolicyk8s.io", "clusterpolicyreports.wgpolicyk8s.io")
	kubectl("delete", "pipepolicy", scan.Name)
	kubectl("--namespace=default", "delete", "pod", recorded.Name, "--grace-period=0", "--force")
}
