package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"
)

func TestHelmLintFindsNothing(t *testing.T) {
	for _, args := range [][]string{nil, {everything}, set("hostNetwork=true", "nodeSelector=null", "image.tag=null")} {
		if out, err := helm(t, append([]string{"lint", "--strict", chart}, args...)...); err != nil {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}

func TestAnotherNamespaceIsThatOfEverything(t *testing.T) {
	stream, err := helm(t, "template", "pipeguard", chart, "--namespace", "guard", "--set", "certificates.certManager.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects(t, stream) {
		if strings.Contains(text(t, o), namespace) && o.kind() != "CustomResourceDefinition" {
			t.Errorf("%s speaks of %s", o.id(), namespace)
		}
		if at := o.at("metadata", "namespace"); at != nil && at != "guard" && !strings.HasSuffix(o.name(), "-webhook-events") && !strings.HasSuffix(o.name(), "-webhook-canary") {
			t.Errorf("%s has the namespace %v", o.id(), at)
		}
		if o.kind() == "ValidatingWebhookConfiguration" {
			for _, w := range decode[admissionregistrationv1.ValidatingWebhookConfiguration](t, o).Webhooks {
				if w.ClientConfig.Service.Namespace != "guard" {
					t.Errorf("%s asks a Service in %s", w.Name, w.ClientConfig.Service.Namespace)
				}
			}
		}
	}
}

func TestTheLongestNamesAreNames(t *testing.T) {
	long := strings.Repeat("x", 45)
	for _, o := range render(t, everything, "--set", "fullnameOverride="+long) {
		longest := 253
		if o.kind() == "Service" || o.kind() == "Deployment" || o.kind() == "DaemonSet" { // labels, and parts of names of hosts
			longest = 63
		}
		if len(o.name()) > longest {
			t.Errorf("%s has %d characters", o.id(), len(o.name()))
		}
		labels, _ := o.at("metadata", "labels").(map[string]any)
		for key, value := range labels {
			if s, ok := value.(string); !ok || len(s) > 63 {
				t.Errorf("%s: the label %s is %v", o.id(), key, value)
			}
		}
	}
}

func TestValuesAreNoTemplates(t *testing.T) {
	const value = `{{ fail "it was evaluated" }}`
	all := render(t, "--set-json", `podAnnotations={"a":`+quotedJSON(value)+`}`, "--set-json", `serviceAccountAnnotations={"a":`+quotedJSON(value)+`}`)
	if got := decode[appsv1.Deployment](t, one(t, all, "Deployment", "pipeguard-webhook")).Spec.Template.Annotations["a"]; got != value {
		t.Errorf("the annotation is %q", got)
	}
	if got := one(t, all, "ServiceAccount", "pipeguard-webhook").at("metadata", "annotations", "a"); got != value {
		t.Errorf("the account's annotation is %q", got)
	}
}

func quotedJSON(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

// Numbers of --set-json are floating point to helm, which prints large ones with an exponent, and those of --set-string are texts.
func TestNumbersAreNumbersHoweverTheyAreGiven(t *testing.T) {
	for _, args := range [][]string{
		set("webhook.port=10250", "preStopSeconds=1000000", "terminationGracePeriodSeconds=2000000", "podDisruptionBudget.maxUnavailable=2"),
		{"--set-json", "webhook.port=10250", "--set-json", "preStopSeconds=1000000", "--set-json", "terminationGracePeriodSeconds=2000000", "--set-json", "podDisruptionBudget.maxUnavailable=2"},
		append(set("preStopSeconds=1000000", "terminationGracePeriodSeconds=2000000"), "--set-string", "webhook.port=10250,podDisruptionBudget.maxUnavailable=2"),
	} {
		all := render(t, args...)
		pod := decode[appsv1.Deployment](t, one(t, all, "Deployment", "pipeguard-webhook")).Spec.Template.Spec
		c := pod.Containers[0]
		if c.Ports[0].ContainerPort != 10250 || c.Lifecycle.PreStop.Sleep.Seconds != 1000000 || *pod.TerminationGracePeriodSeconds != 2000000 {
			t.Errorf("%q: %v, %d, %d", args, c.Ports[0], c.Lifecycle.PreStop.Sleep.Seconds, *pod.TerminationGracePeriodSeconds)
		}
		if got := one(t, all, "PodDisruptionBudget", "pipeguard-webhook").at("spec", "maxUnavailable"); got != int64(2) && got != float64(2) {
			t.Errorf("%q: maxUnavailable is %T %[2]v", args, got)
		}
	}
}

func TestEmptyMappingsAreTaken(t *testing.T) {
	var args []string
	for _, name := range []string{"podSecurityContext", "securityContext", "resources", "affinity", "podLabels", "podAnnotations", "commonLabels",
		"serviceAccountAnnotations", "policies", "config", "node.config", "node.affinity", "node.resources", "certificates.certManager.issuerRef"} {
		args = append(args, "--set-json", name+"={}")
	}
	for _, name := range []string{"tolerations", "imagePullSecrets", "topologySpread.topologyKeys", "node.tolerations", "node.workingDirs", "networkPolicy.metricsFrom"} {
		args = append(args, "--set-json", name+"=[]")
	}
	isWhole(t, "empty mappings", render(t, append(args, "--set", "node.enabled=true")...))
}

// Helm sends what it applies to the API server, which refuses a list that says the same thing twice.
func TestNothingIsSaidTwice(t *testing.T) {
	twice := func(t *testing.T, where string, keys []string) {
		t.Helper()
		slices.Sort(keys)
		if got := slices.Compact(slices.Clone(keys)); len(got) != len(keys) {
			t.Errorf("%s: %q", where, keys)
		}
	}
	all := renderings(t)
	all["its own annotation"] = render(t, append(set(`podAnnotations.kubectl\.kubernetes\.io/default-container=x`, `node.podAnnotations.kubectl\.kubernetes\.io/default-container=y`,
		"node.enabled=true"), "--set-string", `commonLabels.rbac\.authorization\.k8s\.io/aggregate-to-view=false`)...)
	for rendering, all := range all {
		for _, o := range all { // keys of mappings are looked at when the rendering is read
			switch o.kind() {
			case "Deployment", "DaemonSet":
				pod := decode[appsv1.Deployment](t, object{"spec": map[string]any{"template": o.at("spec", "template")}}).Spec.Template.Spec
				var volumes, spread, mounts, env, ports []string
				for _, v := range pod.Volumes {
					volumes = append(volumes, v.Name)
				}
				for _, c := range pod.TopologySpreadConstraints {
					spread = append(spread, c.TopologyKey+" "+string(c.WhenUnsatisfiable))
				}
				for _, m := range pod.Containers[0].VolumeMounts {
					mounts = append(mounts, m.MountPath)
				}
				for _, e := range pod.Containers[0].Env {
					env = append(env, e.Name)
				}
				for _, p := range pod.Containers[0].Ports {
					ports = append(ports, string(p.Protocol)+p.Name)
				}
				for name, keys := range map[string][]string{"volumes": volumes, "spread": spread, "mounts": mounts, "env": env, "ports": ports} {
					twice(t, rendering+": "+o.id()+": "+name, keys)
				}
			case "ValidatingWebhookConfiguration":
				var names []string
				for _, w := range decode[admissionregistrationv1.ValidatingWebhookConfiguration](t, o).Webhooks {
					names = append(names, w.Name)
				}
				twice(t, rendering+": "+o.id(), names)
			}
		}
	}
	role := one(t, all["its own annotation"], "ClusterRole", "pipeguard-reports-view")
	if got := role.at("metadata", "labels", "rbac.authorization.k8s.io/aggregate-to-view"); got != "true" {
		t.Errorf("a common label replaces what the role is for: %v", got)
	}
}

// parent is a chart that depends on this one by another name, and turns it on and off.
func parent(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "charts", "pipeguard"), os.DirFS(chart)); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"Chart.yaml": `apiVersion: v2
name: platform
version: 1.0.0
dependencies:
  - name: pipeguard
    version: ">=0.0.0-0"
    alias: guard
    condition: guard.enabled
`,
		"values.yaml": `global: {imageRegistry: registry.example.com, storageClass: {name: fast}}
guard:
  enabled: true
  drivers: {smb: {enabled: true}}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestAnotherChartMayDependOnThisOne(t *testing.T) {
	dir := parent(t)
	// Helm ignores a null of the parent's own values, and takes one of its user's.
	stream, err := helm(t, "template", "shop", dir, "--namespace", namespace, "--set", "guard.nodeSelector=null")
	if err != nil {
		t.Fatal(err)
	}
	all := objects(t, stream)
	isWhole(t, "as a dependency", all)
	alone, err := helm(t, "template", "shop", chart, "--namespace", namespace, "--set", "nodeSelector=null,drivers.smb.enabled=true")
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, o := range all {
		got = append(got, o.id())
	}
	for _, o := range objects(t, alone) {
		want = append(want, o.id())
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-alone +as a dependency):\n%s", diff)
	}
	d := decode[appsv1.Deployment](t, one(t, all, "Deployment", "shop-pipeguard-webhook"))
	if len(d.Spec.Template.Spec.NodeSelector) > 0 || d.Spec.Template.Spec.Containers[0].Image != "docker.io/pipeguard/webhook:0.1.0-dev" {
		t.Errorf("the values of the parent, or the appVersion of this chart, are not what counts: %+v", d.Spec.Template.Spec)
	}
	if p := decode[corev1.ConfigMap](t, one(t, all, "ConfigMap", "shop-pipeguard-parameters")).Data["parameters.yaml"]; !strings.Contains(p, "csi-smb-node-sa") {
		t.Error("the driver of the parent's values is not permitted")
	}
	off, err := helm(t, "template", "shop", dir, "--set", "guard.enabled=false")
	if err != nil || len(objects(t, off)) > 0 {
		t.Errorf("turned off: %v\n%.500s", err, off)
	}
	if _, err := helm(t, "template", "shop", dir, "--set", "guard.replicaCount=3"); err == nil || !strings.Contains(err.Error(), "replicaCount") {
		t.Errorf("an unknown value of the dependency: %v", err)
	}
}
