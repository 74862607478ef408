//go:build !windows

package skew

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/version"
	"github.com/pipeguard/pipeguard/test/harness"
)

// page is the table that operators read. What only one of the releases knows stands in it, in backquotes.
func page(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "versions.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// listed fails the test unless the page names something.
func listed(t *testing.T, text, name string) {
	t.Helper()
	if !strings.Contains(text, "`"+name+"`") {
		t.Errorf("docs/versions.md does not say what becomes of `%s`, which one of the releases does not have", name)
	}
}

var unknownKey = regexp.MustCompile(`unknown key "([^"]+)"`)

// unknownKeys are the keys of a file that a program does not know, as it says.
func unknownKeys(said string) (keys []string) {
	for _, found := range unknownKey.FindAllStringSubmatch(said, -1) {
		keys = append(keys, found[1])
	}
	return keys
}

// readsWebhook has the webhook of a release read a configuration, and returns what it says of it. There is no cluster for it.
func readsWebhook(t *testing.T, r release, file string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), r.program("webhook"), "--config", file, "--kubeconfig", filepath.Join(t.TempDir(), "none"))
	cmd.Env = append(os.Environ(), "POD_NAMESPACE=pipeguard-system", "POD_NAME=pipeguard-webhook-0")
	_, stderr, code, err := harness.Run(cmd)
	if err != nil || code == 0 {
		t.Fatalf("%s: exit code %d, %v", r.name, code, err)
	}
	if len(unknownKeys(stderr)) == 0 && !strings.Contains(stderr, "find the cluster") {
		t.Errorf("%s does not read %s: %s", r.name, file, stderr)
	}
	return stderr
}

// Every setting of the release before is one of this release, and one that the release before lacks is refused by its name.
func TestConfigurationFilesOfEitherReleaseAreReadOrRefusedByName(t *testing.T) {
	old, now := releases(t)
	text := page(t)
	for _, r := range []release{old, now} {
		for what, said := range map[string]string{
			"the webhook's configuration": readsWebhook(t, r, now.file("config", "samples", "webhook.yaml")),
			"the proxy's configuration": func() string {
				_, stderr, _ := r.run(t, "proxy", "check-config", now.file("config", "samples", "proxy.yaml"))
				return stderr
			}(),
		} {
			keys := unknownKeys(said)
			if r == now && len(keys) > 0 {
				t.Errorf("%s: %s does not know its own sample: %q", what, r.name, keys)
			}
			for _, key := range keys {
				listed(t, text, key)
			}
		}
	}
	if keys := unknownKeys(readsWebhook(t, now, old.file("config", "samples", "webhook.yaml"))); len(keys) > 0 {
		t.Errorf("keys of the webhook's configuration are gone: %q", keys)
	}
	if _, stderr, _ := now.run(t, "proxy", "check-config", old.file("config", "samples", "proxy.yaml")); len(unknownKeys(stderr)) > 0 {
		t.Errorf("keys of the proxy's configuration are gone: %s", stderr)
	}
}

// A key that no release has stands for one of a later release.
func TestAKeyOfALaterReleaseIsRefusedWithTheRemedy(t *testing.T) {
	_, now := releases(t)
	file := filepath.Join(t.TempDir(), "later.yaml")
	want := `unknown key "later": ` + version.Number() + " does not have it; correct the key, or run the release that has it"
	harness.Replace(t, file, "apiVersion: pipeguard.dev/v1alpha1\nkind: WebhookConfig\nlater: 1\n")
	if said := readsWebhook(t, now, file); !strings.Contains(said, want) {
		t.Errorf("the webhook says %s", said)
	}
	harness.Replace(t, file, "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\nlater: 1\n")
	if _, said, code := now.run(t, "proxy", "check-config", file); code != 1 || !strings.Contains(said, want) {
		t.Errorf("the proxy says %s", said)
	}
	harness.Replace(t, file, "later: 1\n")
	if said, allowed := reviewed(t, now, file); allowed || !strings.Contains(said, `unknown key "later"; known to this release are `) {
		t.Errorf("of parameters %s", said)
	}
}

// reviewed judges a pod without pipes by a file of parameters.
func reviewed(t *testing.T, r release, parameters string) (said string, admitted bool) {
	t.Helper()
	stdout, stderr, code := r.run(t, "pipeguard", "review", "-f", r.file("test", "quickstart", "testdata", "ordinary.yaml"), "--params", parameters)
	return stdout + stderr, code == 0
}

func TestParametersOfEitherReleaseAreReadOrRefusedByName(t *testing.T) {
	text := page(t)
	bothWays(t, func(t *testing.T, p pair) {
		for _, file := range []string{p.makes.file("config", "samples", "parameters.yaml"), p.makes.file("test", "quickstart", "testdata", "parameters.yaml")} {
			said, admitted := reviewed(t, p.reads, file)
			keys := unknownKeys(said)
			if !admitted && (len(keys) == 0 || p.reads.name == "this release") {
				t.Errorf("%s does not read %s: %s", p.reads.name, file, said)
			}
			for _, key := range keys {
				listed(t, text, key)
			}
		}
	})
}
