package chart_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// review is what `pipeguard review` says of one object.
type review struct {
	Kind, Namespace, Verdict string

	Findings []struct{ Code, Effect, Field string }
}

// in puts an object into a namespace.
func in(namespace string, o object) object {
	moved := maps.Clone(o)
	metadata, _ := o["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["namespace"] = namespace
	moved["metadata"] = metadata
	return moved
}

// judge asks the program, with the built-in policies, about objects.
func judge(t *testing.T, parameters string, all ...object) []review {
	t.Helper()
	dir := t.TempDir()
	var stream strings.Builder
	for _, o := range all {
		stream.WriteString("---\n" + text(t, o))
	}
	files := map[string]string{"objects.yaml": stream.String(), "parameters.yaml": parameters}
	for name, content := range files {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", "./cmd/pipeguard", "review", "-o", "json", "-f", files["objects.yaml"], "--params", files["parameters.yaml"])
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0") // as other tests build it, so that it is compiled once
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, _ := cmd.Output() // a refusal ends with another exit code
	var report struct{ Objects []review }
	if err := json.Unmarshal(out, &report); err != nil || len(report.Objects) != len(all) {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	return report.Objects
}

// asPod is the pod that the DaemonSet's controller makes.
func asPod(t *testing.T, daemonSet object) object {
	t.Helper()
	template, ok := daemonSet.at("spec", "template").(map[string]any)
	if !ok {
		t.Fatal("the DaemonSet has no template")
	}
	pod := object(maps.Clone(template))
	metadata, _ := template["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	metadata["name"] = daemonSet.name() + "-x7k2p"
	pod["apiVersion"], pod["kind"], pod["metadata"] = "v1", "Pod", metadata
	return pod
}

// renderedParameters are those that the webhook of a release decides by.
func renderedParameters(t *testing.T, all []object) string {
	t.Helper()
	content, ok := one(t, all, "ConfigMap", "pipeguard-parameters").at("data", "parameters.yaml").(string)
	if !ok {
		t.Fatal("no parameters")
	}
	return content
}

func TestTheWebhookAdmitsTheNodeComponentWhereItBelongsAndNowhereElse(t *testing.T) {
	for _, effect := range []string{"Ignore", "Audit", "Warn", "Deny"} {
		all := render(t, append(nodeValues, set("parameters.hostProcess="+effect, "parameters.equalPower=Deny", "parameters.requirement=AllowedNamespace")...)...)
		daemonSet := one(t, all, "DaemonSet", "pipeguard-node")
		pod := asPod(t, daemonSet)
		other := objects(t, strings.Replace(text(t, pod), "serviceAccountName: pipeguard-node", "serviceAccountName: default", 1))[0]
		for i, got := range judge(t, renderedParameters(t, all), daemonSet, in(nodeNamespace, pod),
			in(namespace, pod), in("default", pod), in("kube-system", pod), in(nodeNamespace, other)) {
			isOwn := i < 2
			if isOwn && (got.Verdict != "allowed" || len(got.Findings) > 0) {
				t.Errorf("hostProcess %s: %s in %s is %s: %+v", effect, got.Kind, got.Namespace, got.Verdict, got.Findings)
			}
			if !isOwn && (got.Verdict == "allowed") != (effect != "Deny") {
				t.Errorf("hostProcess %s: %s in %s is %s: %+v", effect, got.Kind, got.Namespace, got.Verdict, got.Findings)
			}
		}
	}
}

// A mount that such a pod does not need is refused, in its own namespace as in any other.
func TestTheNodeComponentsNamespaceIsAllowedNoPipe(t *testing.T) {
	all := render(t, nodeValues...)
	pod := text(t, asPod(t, one(t, all, "DaemonSet", "pipeguard-node")))
	pod = strings.Replace(pod, "volumes:\n", "volumes:\n  - {name: pipe, hostPath: {path: '\\\\.\\pipe\\csi-proxy-disk-v1'}}\n", 1)
	greedy := objects(t, pod)[0]
	for _, got := range judge(t, renderedParameters(t, all), in(nodeNamespace, greedy), in(namespace, greedy), in("default", greedy)) {
		if got.Verdict != "denied" {
			t.Errorf("in %s it is %s: %+v", got.Namespace, got.Verdict, got.Findings)
		}
	}
}

func TestTheNodeComponentsAccountIsTheOnlyOneThatIsAdded(t *testing.T) {
	want := parameters(t, render(t), "pipeguard-parameters")
	want.HostProcessAllowed = map[string]admission.Subjects{nodeNamespace: {ServiceAccounts: []string{"pipeguard-node"}}}
	got := parameters(t, render(t, nodeValues...), "pipeguard-parameters")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the webhook's parameters (-want +got):\n%s", diff)
	}
}
