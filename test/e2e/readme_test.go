//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// exampleRegistry is the line of the README that everyone has to change.
const exampleRegistry = "REGISTRY=registry.example.com/pipeguard"

// readmeInstallation is the README's block of shell that installs the chart, with another registry.
func readmeInstallation(t *testing.T, registry string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], "helm install ") && strings.HasPrefix(block[1], exampleRegistry) {
			return strings.Replace(block[1], exampleRegistry, "REGISTRY="+registry, 1)
		}
	}
	t.Fatal("the README has no lines that install the chart")
	return ""
}

func readmeInstalls(t *testing.T) {
	host, err := shared.StartRegistry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Helm wrote the name of the release that is gone into the CRDs.
	if out, err := shared.Helm(t.Context(), "install", "another", chart(), "--namespace=another", "--create-namespace"); err == nil || !strings.Contains(out, "invalid ownership metadata") {
		t.Errorf("a release of another name takes the CRDs over: %v\n%s", err, out)
	}
	out, err := shared.Shell(t.Context(), readmeInstallation(t, host+"/pipeguard"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "Succeeded") {
		t.Errorf("helm test did not succeed:\n%s", out)
	}
	harness.Eventually(t, readyLimit, "the webhook enforces", enforces)
	if image := webhookImage(t); !strings.HasPrefix(image, host+"/pipeguard/webhook:") {
		t.Errorf("the image is %s, and not the one that was pushed", image)
	}
	mustRefuse(t, pod("default", "after-the-readme", mounts(diskPipe), onWindows), "PG0")
	if err := shared.Client.Get(t.Context(), client.ObjectKeyFromObject(kept), kept.DeepCopy()); err != nil {
		t.Errorf("the policy that stayed is not there: %v", err)
	}
}
