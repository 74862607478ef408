//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/routes"
)

const admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ValidatingAdmissionPolicyConfiguration
    staticManifestsDir: %q
`

// An API server that reads the printed floor from a file refuses before anything else is in the cluster, and follows the file.
func TestAStaticFloorHoldsFromTheFirstRequest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	exe, err := harness.Build(t.Context(), dir, "./cmd/pipeguard")
	if err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(dir, "manifests")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	// put prints the floor of parameters elsewhere and renames it into place, as the guide says.
	put := func(parameters string) {
		t.Helper()
		file := filepath.Join(dir, "parameters.yaml")
		if err := os.WriteFile(file, []byte(parameters), 0o600); err != nil {
			t.Fatal(err)
		}
		text, stderr, code, err := harness.Run(exec.CommandContext(t.Context(), exe, "policy", "floor", "--static", "--params", file))
		if err != nil || code != 0 {
			t.Fatalf("exit code %d, %v: %s", code, err, stderr)
		}
		printed := filepath.Join(dir, "floor.yaml")
		if err := errors.Join(os.WriteFile(printed, []byte(text), 0o600), os.Rename(printed, filepath.Join(manifests, "floor.yaml"))); err != nil {
			t.Fatal(err)
		}
	}
	put("allowedNamespaces: {drivers: {}}\n")
	config := filepath.Join(dir, "admission.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, admissionConfiguration, manifests), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := cluster.StartAPIServer(context.WithoutCancel(t.Context()), cluster.APIServerOptions{
		Tools: shared.tools, Dir: dir, Flags: map[string]string{"admission-control-config-file": config},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := errors.Join(api.EnsureNamespace(t.Context(), "drivers"), api.EnsureNamespace(t.Context(), "others")); err != nil {
		t.Fatal(err)
	}
	refused := 0
	all := routes.Openings(t, "others")
	for _, o := range all {
		err := api.Client.Create(t.Context(), o.Object, client.DryRunAll)
		if err == nil {
			t.Errorf("OPEN: %T with %q, %q is admitted", o.Object, o.HostPath, o.SubPath)
		} else if isFloored(err) {
			refused++
		} else if !apierrors.IsInvalid(err) {
			t.Errorf("%T with %q, %q: %v", o.Object, o.HostPath, o.SubPath, err)
		}
	}
	if refused < len(all)*3/4 {
		t.Errorf("the floor refused %d of %d", refused, len(all))
	}
	driver := pod("drivers", "", pipe)
	if err := api.Client.Create(t.Context(), driver, client.DryRunAll); err != nil {
		t.Errorf("a pod of an allowed namespace: %v", err)
	}

	put("{}\n")
	harness.Eventually(t, limit, "a namespace that is allowed no longer is refused", func(ctx context.Context) error {
		if err := api.Client.Create(ctx, driver, client.DryRunAll); !isFloored(err) {
			return fmt.Errorf("not refused by the floor: %w", errors.Join(err))
		}
		return nil
	})
	// The danger that the guide warns of.
	if err := os.Remove(filepath.Join(manifests, "floor.yaml")); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, limit, "without the file everything is admitted", func(ctx context.Context) error {
		return api.Client.Create(ctx, driver, client.DryRunAll)
	})
}
