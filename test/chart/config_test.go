package chart_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// webhookTaking builds the webhook, and returns a function that says whether it takes a configuration.
func webhookTaking(t *testing.T) func(config string) (isTaken bool, out string) {
	t.Helper()
	dir := t.TempDir()
	exe, file, params := filepath.Join(dir, "webhook"), filepath.Join(dir, "webhook.yaml"), filepath.Join(dir, "parameters.yaml")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", exe, root+"/cmd/webhook").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(params, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(config string) (bool, string) {
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), exe, "--config="+file, "--params="+params, "--kubeconfig=/nonexistent/config")
		cmd.Env = append(cmd.Environ(), "POD_NAME=a", "POD_NAMESPACE="+namespace)
		out, err := cmd.CombinedOutput() // wrong settings end with 2, and an empty file of parameters with 1
		isTaken := cmd.ProcessState.ExitCode() == 1 && strings.Contains(string(out), params)
		if !isTaken && cmd.ProcessState.ExitCode() != 2 {
			t.Fatalf("%v\n%s", err, out)
		}
		return isTaken, string(out)
	}
}

func TestTheWebhookTakesItsConfiguration(t *testing.T) {
	isTaken := webhookTaking(t)
	for rendering, all := range renderings(t) {
		if ok, out := isTaken(webhookConfigText(t, all, fullname(rendering)+"-webhook")); !ok {
			t.Errorf("%s: %s", rendering, out)
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

// Times and fields that go together are refused by helm where the webhook would refuse them, and not first by its start.
func TestHelmRefusesSettingsThatTheWebhookRefuses(t *testing.T) {
	isTaken, defaults := webhookTaking(t), webhookConfig(t, render(t), "pipeguard-webhook")
	taken := map[bool]int{}
	for _, value := range []string{
		`{"cluster":{"scanInterval":"1s"}}`, `{"cluster":{"scanInterval":"59.9s"}}`, `{"cluster":{"scanInterval":"59500ms500ms"}}`, `{"cluster":{"scanInterval":"0.99m"}}`,
		`{"cluster":{"scanInterval":"0h1m"}}`, `{"certificate":{"certFile":"/a"}}`, `{"certificate":{"keyFile":"/a"}}`, `{"certificate":{"certFile":"/a","keyFile":"/b"}}`,
		`{"certificate":{"certFile":"/a","keyFile":"/b","dir":"/c"}}`, `{"bundles":{"life":"1h"}}`, `{"bundles":{"modules":"/a"}}`, `{"bundles":{"key":"/a"}}`,
		`{"bundles":{"key":"/a","life":"599s"}}`, `{"bundles":{"key":"/a","life":"10m"}}`, `{"bundles":{"key":"/a","life":"2160h"}}`, `{"bundles":{"key":"/a","life":"2160h1s"}}`,
		`{"bundles":{"key":"/a","life":"1h500ms"}}`, `{"bundles":{"key":"/a","pools":["b","b"]}}`, `{"bundles":{"key":"/a","pools":["B"]}}`, `{"bundles":{}}`, `{"audit":{}}`, `{"audit":{"log":" -"}}`, `{"audit":{"log":"/a "}}`, `{"audit":{"log":"/a b"}}`,
		`{"bundles":{"key":"/a","minimumRevision":1767323045}}`, `{"bundles":{"key":"/a","minimumRevision":-1}}`, `{"bundles":{"key":"/a","minimumRevision":1.5}}`,
		`{"bundles":{"serve":true}}`, `{"bundles":{"serve":false}}`, `{"bundles":{"minimumRevision":0}}`, `{"bundles":{"key":"/a","serve":false}}`, `{"witness":{"trustFirstUse":false}}`,
		`{"certificate":{"hosts":["10.96.0.20","fd00::20"]}}`, `{"witness":{"nodeKeys":"/a"}}`, `{"witness":{"key":"/a"}}`, `{"witness":{"key":"/a","nodeKeys":"/b"}}`, `{"witness":{"key":"/a","trustFirstUse":true}}`,
	} {
		var config map[string]any
		if err := yaml.Unmarshal([]byte(value), &config); err != nil {
			t.Fatal(err)
		}
		merged := maps.Clone(defaults)
		for name, section := range config {
			of, _ := merged[name].(map[string]any)
			of = maps.Clone(of)
			if of == nil {
				of = map[string]any{}
			}
			maps.Copy(of, section.(map[string]any))
			merged[name] = of
		}
		text, err := yaml.Marshal(merged)
		if err != nil {
			t.Fatal(err)
		}
		want, out := isTaken(string(text))
		if _, err := template(t, "--set-json", "config="+value); (err == nil) != want {
			t.Errorf("%s: helm: %v; webhook: %s", value, err, out)
		}
		taken[want]++
	}
	if taken[true] < 8 || taken[false] < 8 {
		t.Errorf("taken and refused: %v", taken)
	}
}

// sharedSettings are settings of the webhook by which other objects of the chart go, with the values that set them for all.
func sharedSettings() map[string]string {
	return map[string]string{
		"cluster.webhookConfig": "fullnameOverride", "cluster.policyWebhookConfig": "fullnameOverride", "cluster.canaryNamespace": "webhook.canaryNamespace",
		"cluster.labelNodes": "nodeLabels.enabled", "floor.mode": "floor.mode", "floor.name": "fullnameOverride", "floor.clusterRole": "fullnameOverride",
		"reports.standard": "reports.standard", "reports.clusterRole": "reports.standard", "certificate.secret": "fullnameOverride",
	}
}

func TestSettingsThatOtherObjectsFollowAreSetByTheirValue(t *testing.T) {
	others := map[string]string{"cluster.labelNodes": "true", "floor.mode": "Only", "reports.standard": "PolicyReport"}
	for path, value := range sharedSettings() {
		other, isOne := others[path]
		if !isOne {
			other = "other"
		}
		args := set("config." + path + "=" + other)
		if !isOne && path != "certificate.secret" {
			args = append(args, everything) // whatever the value says
		}
		want := "config." + path + " is " + other + ": set " + value + " instead"
		if out, err := template(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: want %q, got %v\n%.300s", args, want, err, out)
		}
	}
	for _, args := range [][]string{
		set("config.floor.mode=Only"), set("floor.mode=Always", "config.floor.mode=Only"), set("preset=strict", "config.floor.mode=Off"),
		set("nodeLabels.enabled=false", "config.cluster.labelNodes=true"), set("reports.standard=PolicyReport", "config.reports.standard=None"),
		set("webhook.canaryNamespace=canary", "config.cluster.canaryNamespace=-"),
	} {
		if _, err := template(t, args...); err == nil || !strings.Contains(err.Error(), " instead") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// Saying the same twice is no fault, whatever the values are.
func TestSettingsMaySayWhatTheValuesSay(t *testing.T) {
	for _, args := range [][]string{nil, {everything}, set("preset=strict"), set("floor.mode=Only"), set("reports.standard=OpenReports", "nodeLabels.enabled=true")} {
		all := render(t, args...)
		name := "pipeguard-webhook"
		if slices.Contains(args, everything) {
			name = fullname("everything") + "-webhook"
		}
		before := webhookConfig(t, all, name)
		again := slices.Clone(args)
		for path := range sharedSettings() {
			at := strings.Split(path, ".")
			if value := before.at(at[0], at[1]); value != nil {
				again = append(again, set(fmt.Sprintf("config.%s=%v", path, value))...)
			}
		}
		all = render(t, again...)
		if diff := cmp.Diff(before, webhookConfig(t, all, name)); diff != "" || len(again) < len(args)+12 {
			t.Errorf("%q:\n%s", again, diff)
		}
	}
	if _, err := template(t, set("config.reports.standard=None", "config.cluster.labelNodes=false")...); err != nil {
		t.Errorf("what is off is off: %v", err)
	}
}
