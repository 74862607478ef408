package chart_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite config/rbac, config/webhook and config/node from the chart")

// nodeValues are those that config/node is made with.
var nodeValues = set("node.enabled=true", "node.namespace="+nodeNamespace)

// Who installs without Helm has nothing that is managed by it.
var (
	helmLabels = regexp.MustCompile(`(?m)^ *(app\.kubernetes\.io/managed-by: Helm|helm\.sh/chart: .*)\n`)
	helmSource = regexp.MustCompile(`(?m)^# Source: .*\n`)
	rbacKinds  = []string{"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
)

const generated = "# Written from charts/pipeguard by: go test ./test/chart -run Kustomize -update\n"

// bases are what config/ holds of the chart, by file.
func bases(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{"rbac/rbac.yaml": generated, "webhook/webhook.yaml": generated, "node/node.yaml": generated}
	for _, values := range [][]string{nil, nodeValues} {
		stream, err := template(t, values...)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range separator.Split(stream, -1) {
			all := objects(t, document)
			if len(all) == 0 || !isOfOverlay(all[0], values) || all[0].kind() == "CustomResourceDefinition" {
				continue
			}
			file := "webhook/webhook.yaml"
			switch {
			case isOfNode(all[0]):
				file = "node/node.yaml"
			case slices.Contains(rbacKinds, all[0].kind()):
				file = "rbac/rbac.yaml"
			}
			text := helmSource.ReplaceAllString(helmLabels.ReplaceAllString(document, ""), "")
			texts[file] += "---\n" + strings.TrimSpace(text) + "\n"
		}
	}
	return texts
}

// isOfOverlay says whether config/ has the object: of the release without values all but hooks, of the other one the node
// component.
func isOfOverlay(o object, values []string) bool {
	return isOfNode(o) == (len(values) > 0) && o.at("metadata", "annotations", "helm.sh/hook") == nil
}

func TestKustomizeBasesAreThoseOfTheChart(t *testing.T) {
	for file, want := range bases(t) {
		path := filepath.Join(root, "config", file)
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what the chart makes; after a change of the chart, run with -update (-chart +config):\n%s", file, diff)
		}
	}
}

func TestKustomizeMakesWhatHelmMakes(t *testing.T) {
	of := func(values []string) []object {
		return slices.DeleteFunc(render(t, values...), func(o object) bool { return !isOfOverlay(o, values) })
	}
	sameAsKustomize(t, "default", of(nil), namespace, "restricted")
	sameAsKustomize(t, "node", of(nodeValues), nodeNamespace, "privileged")
}

// sameAsKustomize compares what an overlay of config/ makes with objects, which it is to put into a namespace of that
// pod security standard.
func sameAsKustomize(t *testing.T, overlay string, want []object, namespace, standard string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), tool(t, "kubectl"), "kustomize", filepath.Join(root, "config", overlay)).Output()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]object{}
	for _, o := range objects(t, string(out)) {
		got[o.id()] = o
	}
	if ns, ok := got["Namespace/"+namespace]; !ok || ns.at("metadata", "labels", "pod-security.kubernetes.io/enforce") != standard {
		t.Errorf("the namespace is %v", ns)
	}
	delete(got, "Namespace/"+namespace)
	for _, o := range want {
		g, ok := got[o.id()]
		if !ok {
			t.Errorf("there is no %s", o.id())
			continue
		}
		delete(got, o.id())
		for _, x := range []object{o, g} { // labels of Helm and, for CRDs, all of them are the chart's own
			metadata, ok := x["metadata"].(map[string]any)
			if !ok {
				t.Fatalf("%s has no metadata", x.id())
			}
			delete(metadata, "labels")
			if annotations, ok := metadata["annotations"].(map[string]any); ok {
				delete(annotations, "helm.sh/resource-policy") // what helm is told, and nobody else
			}
		}
		if diff := cmp.Diff(o, g); diff != "" {
			t.Errorf("%s (-helm +kustomize):\n%s", o.id(), diff)
		}
	}
	for id := range got {
		t.Errorf("helm does not make %s", id)
	}
}
