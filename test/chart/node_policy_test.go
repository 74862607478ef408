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
		all := render(t, append(nodeValues, set("parameters.hostProcess="+effect, "parameters.hostPaths=Deny", "parameters.equalPower=Deny", "parameters.requirement=AllowedNamespace")...)...)
		daemonSet := one(t, all, "DaemonSet", "pipeguard-node")
		pod := asPod(t, daemonSet)
		but := func(old, replaced string) object {
			changed := strings.Replace(text(t, pod), old, replaced, 1)
			if changed == text(t, pod) {
				t.Fatalf("the pod has no %s", old)
			}
			return objects(t, changed)[0]
		}
		other := but("serviceAccountName: pipeguard-node", "serviceAccountName: default")
		image, container := but("image: docker.io/pipeguard/node:", "image: docker.io/pipeguard/node-of-others:"), but("name: proxy\n", "name: shell\n")
		account, release := but("NT AUTHORITY\\SYSTEM", "NT AUTHORITY\\LocalService"), but("/node:", "/node:v9.")
		for i, got := range judge(t, renderedParameters(t, all), daemonSet, in(nodeNamespace, pod), in(nodeNamespace, release),
			in(namespace, pod), in("default", pod), in("kube-system", pod), in(nodeNamespace, other), in(nodeNamespace, image), in(nodeNamespace, container), in(nodeNamespace, account)) {
			isOwn := i < 3
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
