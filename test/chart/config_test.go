package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// webhookConfigText is the configuration file of a rendering's webhook.
func webhookConfigText(t *testing.T, all []object, name string) string {
	t.Helper()
	template := decode[appsv1.Deployment](t, one(t, all, "Deployment", name)).Spec.Template
	const annotation = "pipeguard.dev/webhook-config"
	for _, v := range template.Spec.Volumes {
		if v.DownwardAPI != nil && v.DownwardAPI.Items[0].FieldRef.FieldPath == "metadata.annotations['"+annotation+"']" {
			return template.Annotations[annotation]
		}
	}
	t.Fatalf("no volume has the annotation %s", annotation)
	return ""
}

func webhookConfig(t *testing.T, all []object, name string) object {
	t.Helper()
	var config object
	if err := yaml.UnmarshalStrict([]byte(webhookConfigText(t, all, name)), &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestTheWebhookTakesItsConfiguration(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "webhook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, root+"/cmd/webhook").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for rendering, all := range renderings(t) {
		name := fullname(rendering) + "-webhook"
		file := filepath.Join(t.TempDir(), "webhook.yaml")
		if err := os.WriteFile(file, []byte(webhookConfigText(t, all, name)), 0o600); err != nil {
			t.Fatal(err)
		}
		params := filepath.Join(filepath.Dir(file), "parameters.yaml")
		if err := os.WriteFile(params, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), exe, "--config="+file, "--params="+params, "--kubeconfig=/nonexistent/config")
		cmd.Env = append(cmd.Environ(), "POD_NAME=a", "POD_NAMESPACE="+namespace)
		out, err := cmd.CombinedOutput() // wrong settings end with 2, and an empty file of parameters with 1
		if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), params) {
			t.Errorf("%s: %v\n%s", rendering, err, out)
		}
	}
	all := render(t, everything)
	if got := webhookConfig(t, all, "guard-webhook").at("audit", "log"); got != "-" {
		t.Errorf("the value config did not reach the webhook: %v", got)
	}
	args := decode[appsv1.Deployment](t, one(t, all, "Deployment", "guard-webhook")).Spec.Template.Spec.Containers[0].Args
	if len(args) != 1 || args[0] != "--config=/etc/pipeguard/config/webhook.yaml" {
		t.Errorf("arguments %q", args)
	}
}
