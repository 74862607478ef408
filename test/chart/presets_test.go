package chart_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/preset"
)

// liveSettings are those that a release brings into force.
func liveSettings(t *testing.T, all []object) preset.Settings {
	t.Helper()
	floor, _ := webhookConfig(t, all, "pipeguard-webhook")["floor"].(map[string]any)
	failurePolicy := ""
	for _, o := range all {
		if o.kind() == "ValidatingWebhookConfiguration" && o.name() == "pipeguard-webhook" {
			for _, w := range decode[admissionregistrationv1.ValidatingWebhookConfiguration](t, o).Webhooks {
				if w.Name == "pods.pipeguard.dev" {
					failurePolicy = string(*w.FailurePolicy)
				}
			}
		}
	}
	return preset.Live(parameters(t, all, "pipeguard-parameters"), failurePolicy, fmt.Sprint(floor["mode"]))
}

func TestTheChartHasTheProgramsPresets(t *testing.T) {
	own, err := os.ReadFile(filepath.Join(root, "internal", "preset", "presets.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(own), read(t, filepath.Join(chart, "files"), "presets.yaml")["presets.yaml"]); diff != "" {
		t.Errorf("run hack/generate.sh (-program +chart):\n%s", diff)
	}
}

func TestAPresetBringsItsSettingsIntoForce(t *testing.T) {
	for _, p := range preset.All() {
		live := liveSettings(t, render(t, set("preset="+p.Name)...))
		if found, differences := preset.Nearest(live); found.Name != p.Name || len(differences) > 0 {
			t.Errorf("%s: %s", p.Name, preset.Say(found.Name, differences))
		}
		if notes := notesOf(t, set("preset="+p.Name)...); !strings.Contains(notes, "Preset: "+p.Name+".\n") {
			t.Errorf("%s: the notes say\n%s", p.Name, notes)
		}
	}
}

func TestWithoutAPresetNothingOfTheReleaseNamesOne(t *testing.T) {
	without, err := template(t)
	if err != nil {
		t.Fatal(err)
	}
	named, err := template(t, set("preset=default")...)
	if err != nil {
		t.Fatal(err)
	}
	const annotation = "  annotations:\n    pipeguard.dev/preset: default\n"
	if strings.Contains(without, "pipeguard.dev/preset") || strings.Contains(without, "action: Deny\n    allowedNamespaces") {
		t.Error("a release without a preset names one, or the parameter action, which earlier releases do not know")
	}
	if diff := cmp.Diff(without, strings.Replace(named, annotation, "", 1)); diff != "" {
		t.Errorf("the preset default is not what there is without one (-without +with):\n%s", diff)
	}
}

// otherValues are values that no preset has, or that another one has.
var otherValues = map[string][]string{
	"parameters.action": {"Warn", "Audit", "Deny"}, "parameters.requirement": {"PrivilegedAndAllowedNamespace", "PrivilegedOrAllowedNamespace"},
	"parameters.hostProcess": {"Ignore", "Deny"}, "parameters.hostPaths": {"Warn", "Audit"}, "parameters.equalPower": {"Warn"},
	"webhook.failurePolicy": {"Fail", "Ignore"}, "floor.mode": {"Off", "Always"},
}

// What is set wins over the preset, and notes and status call it by the same words.
func TestAValueThatIsSetWinsOverThePresetAndIsNamed(t *testing.T) {
	for _, p := range preset.All() {
		for path, values := range otherValues {
			for _, value := range values {
				args := append(set("preset="+p.Name), "--set-string", path+"="+value)
				live := liveSettings(t, render(t, args...))
				want := maps.Clone(p.Settings)
				want[path] = value
				if differences := (preset.Preset{Settings: want}).Differences(live); len(differences) > 0 {
					t.Errorf("%s with %s %s: %v", p.Name, path, value, differences)
				}
				says := "Preset: " + preset.Say(p.Name, p.Differences(live)) + ".\n"
				if value != p.Settings[path] && !strings.Contains(says, ", but for "+path+": "+value) {
					t.Errorf("%s with %s %s is called %q", p.Name, path, value, says)
				}
				if notes := notesOf(t, args...); !strings.Contains(notes, says) {
					t.Errorf("%s with %s %s: the notes lack %q:\n%s", p.Name, path, value, says, notes)
				}
			}
		}
	}
	args := append(set("preset=strict"), "--set-json", `parameters.allowedNamespaces={"storage":{},"kube-system":{"serviceAccounts":["a"]}}`)
	live := liveSettings(t, render(t, args...))
	strict, _ := preset.Find("strict")
	says := "Preset: " + preset.Say("strict", strict.Differences(live)) + "."
	if want := "Preset: strict, but for parameters.allowedNamespaces: kube-system storage."; says != want || !strings.Contains(notesOf(t, args...), want) {
		t.Errorf("%q, want %q, in the notes too", says, want)
	}
	if len(otherValues) != len(strict.Settings)-1 { // and the namespaces
		t.Errorf("of %d settings, other values of %d are tried", len(strict.Settings), len(otherValues))
	}
}

func TestPoliciesOfTheValuesHaveTheActionOfThePresetUnlessTheySetOne(t *testing.T) {
	args := append(set("preset=observe", "drivers.azuredisk.enabled=true"), "--set-json",
		`policies={"silent":{"pipes":["a"],"subjects":[]},"privileged":{"pipes":["b"],"admission":{"requirement":"PrivilegedOrAllowedNamespace"}},"strict":{"pipes":["c"],"admission":{"action":"Deny"}}}`)
	got := map[string]string{}
	for name, p := range parameters(t, render(t, args...), "pipeguard-parameters").PipePolicies {
		if len(p.Pipes) > 0 {
			got[name] = string(p.Action) + " " + string(p.Requirement)
		}
	}
	want := map[string]string{
		"azuredisk": "Audit AllowedNamespace", "silent": "Audit AllowedNamespace", "privileged": "Audit PrivilegedOrAllowedNamespace", "strict": "Deny AllowedNamespace",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// podOf is a pod of the namespace shop that mounts a host path.
func podOf(name, path string, container map[string]any) object {
	c := map[string]any{"name": "web", "image": "registry.example/web:v1", "volumeMounts": []any{map[string]any{"name": "v", "mountPath": `C:\m`}}}
	maps.Copy(c, container)
	return object{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": "shop"}, "spec": map[string]any{
		"containers": []any{c}, "volumes": []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": path}}},
	}}
}

func TestWhatEachPresetRefuses(t *testing.T) {
	privileged := map[string]any{"securityContext": map[string]any{"privileged": true}}
	host := map[string]any{"securityContext": map[string]any{"windowsOptions": map[string]any{"hostProcess": true, "runAsUserName": `NT AUTHORITY\SYSTEM`}}}
	pods := []object{
		podOf("stranger", `\\.\pipe\csi-proxy-disk-v1`, nil), podOf("privileged", `\\.\pipe\csi-proxy-disk-v1`, privileged), podOf("lead", `\\.\pipe`, nil),
		podOf("everything", `\\.\pipe\`, nil), podOf("kubelet", `C:\var\lib\kubelet`, nil), podOf("windows", `C:\Windows`, nil), podOf("host", `C:\app`, host),
		podOf("harmless", `C:\app`, nil),
	}
	for name, refused := range map[string][]string{
		"observe": {"everything"},
		"default": {"stranger", "lead", "everything"},
		"strict":  {"stranger", "privileged", "lead", "everything", "kubelet", "windows", "host"},
	} {
		reviews := judge(t, renderedParameters(t, render(t, set("preset="+name)...)), pods...)
		for i, pod := range pods {
			if got, want := reviews[i].Verdict == "denied", slices.Contains(refused, pod.name()); got != want {
				t.Errorf("%s, %s: %+v, want it refused: %t", name, pod.name(), reviews[i], want)
			}
		}
	}
}
