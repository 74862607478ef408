package chart_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// mayBeNull are the values whose default null takes away, with all below them. What decides who is refused is not among them, nor what a
// release cannot be without: an empty list there has to be written as one.
var mayBeNull = []string{
	"policies", "config", "nodeSelector", "tolerations", "affinity", "topologySpread", "topologySpread.topologyKeys", "resources",
	"podSecurityContext", "securityContext", "podLabels", "podAnnotations", "commonLabels", "serviceAccountAnnotations",
	"imagePullSecrets", "priorityClassName", "fullnameOverride", "dnsPolicy", "image.tag", "image.digest", "image.pullPolicy",
	"node.namespace", "node.image.tag", "node.image.digest", "node.image.pullPolicy", "node.config", "node.reports.apiServer",
	"node.workingDirs", "node.logFile", "node.metricsAddress", "node.extraArgs", "node.resources", "node.priorityClassName",
	"node.nodeSelector", "node.tolerations", "node.affinity", "node.podLabels", "node.podAnnotations", "node.podMonitor.labels",
	"bundles.modulesConfigMap", "bundles.namespace", "witness.nodeKeys", "certificates.certManager.issuerRef",
	"networkPolicy.metricsFrom", "serviceMonitor.labels", "prometheusRule.labels", "dashboard.labels",
}

// valuePaths lists the keys of a mapping and of those in it, as --set writes them.
func valuePaths(values map[string]any, prefix string) (paths []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := prefix + strings.ReplaceAll(key, ".", `\.`)
		paths = append(paths, path)
		if below, ok := values[key].(map[string]any); ok {
			paths = append(paths, valuePaths(below, path+".")...)
		}
	}
	return paths
}

// valuesOf are those of the chart without any set.
func valuesOf(t *testing.T) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(read(t, chart, "values.yaml")["values.yaml"]), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func isBelow(path string, any []string) bool {
	return slices.ContainsFunc(any, func(p string) bool { return path == p || strings.HasPrefix(path, p+".") })
}

func TestNullIsRefusedByNameWhereAValueMustBe(t *testing.T) {
	var refused []string
	for _, path := range valuePaths(valuesOf(t), "") {
		if !isBelow(path, mayBeNull) {
			refused = append(refused, path)
		}
	}
	if len(refused) < 80 {
		t.Fatalf("only %d values: %q", len(refused), refused)
	}
	// One run tells of all that have no other above them: a value that is gone hides those below it.
	for depth := range 4 {
		var args, names []string
		for _, path := range refused {
			if strings.Count(path, ".") == depth {
				args, names = append(args, "--set", path+"=null"), append(names, path)
			}
		}
		if len(args) == 0 {
			continue
		}
		_, err := template(t, args...)
		if err == nil {
			t.Fatalf("%q may be left out", names)
		}
		for _, path := range names {
			at := strings.LastIndex(path, ".")
			parent, key := strings.ReplaceAll("/"+path[:max(at, 0)], ".", "/"), path[at+1:]
			says := regexp.MustCompile(`(?m)^ *- at '` + regexp.QuoteMeta(strings.TrimSuffix(parent, "/")) + `': missing propert(y|ies) .*'` + regexp.QuoteMeta(key) + `'`)
			if !says.MatchString(err.Error()) {
				t.Errorf("the refusal does not name %s", path)
			}
		}
	}
}

func TestNullTakesADefaultAway(t *testing.T) {
	var taken []string
	for _, path := range valuePaths(valuesOf(t), "") {
		if isBelow(path, mayBeNull) {
			taken = append(taken, path)
		}
	}
	if len(taken) < len(mayBeNull) {
		t.Fatalf("%d values, and %d may be null: %q", len(taken), len(mayBeNull), taken)
	}
	var together []string
	for _, path := range mayBeNull {
		if !isBelow(path[:max(strings.LastIndex(path, "."), 0)], mayBeNull) {
			together = append(together, "--set", path+"=null")
		}
	}
	for name, args := range map[string][]string{"alone": nil, "with nodes": nodeValues, "with bundles, witness and cert-manager": set(
		"node.enabled=true", "bundles.enabled=true", "witness.enabled=true", "witness.trustFirstUse=true", "certificates.certManager.enabled=true",
		"serviceMonitor.enabled=true", "prometheusRule.enabled=true", "dashboard.enabled=true")} {
		isWhole(t, "all of them, "+name, render(t, slices.Concat(args, together)...))
	}
	// With everything set, each by itself.
	for _, path := range taken {
		if slices.Contains(mayBeNull, path) && path != "node.metricsAddress" { // which the PodMonitor needs
			isWhole(t, path, render(t, everything, "--set", path+"=null"))
		}
	}
	if _, err := template(t, everything, "--set", "node.metricsAddress=null"); err == nil || !strings.Contains(err.Error(), "node.podMonitor.enabled without node.metricsAddress") {
		t.Errorf("a PodMonitor without an address: %v", err)
	}
}

// isWhole checks that objects are of kinds that Kubernetes has, with their fields only, and that none of these is null.
func isWhole(t *testing.T, of string, all []object) {
	t.Helper()
	for _, o := range all {
		if check := typed[fmt.Sprint(o["apiVersion"])+"/"+o.kind()]; check != nil {
			check(t, o)
		}
		if o.kind() == "CustomResourceDefinition" {
			continue // as generated
		}
		if at := nullIn(map[string]any(o)); at != "" {
			t.Errorf("%s: %s has a null at %s", of, o.id(), at)
		}
	}
	if len(all) < 12 {
		t.Errorf("%s: only %d objects", of, len(all))
	}
}

// nullIn is the place of a null in a value, or nothing.
func nullIn(v any) string {
	switch v := v.(type) {
	case nil:
		return "/"
	case map[string]any:
		for key, value := range v {
			if at := nullIn(value); at != "" {
				return "/" + key + at
			}
		}
	case []any:
		for i, value := range v {
			if at := nullIn(value); at != "" {
				return fmt.Sprintf("/%d%s", i, at)
			}
		}
	}
	return ""
}

func TestANullIsWhatAPodHasNot(t *testing.T) {
	d := decode[appsv1.Deployment](t, one(t, render(t, set("nodeSelector=null", "tolerations=null", "resources=null", "affinity=null",
		"securityContext=null", "podSecurityContext=null", "priorityClassName=null", "topologySpread=null", "image.tag=null")...), "Deployment", "pipeguard-webhook"))
	pod := d.Spec.Template.Spec
	if len(pod.NodeSelector) > 0 || len(pod.Tolerations) > 0 || pod.Affinity != nil || pod.SecurityContext != nil || pod.PriorityClassName != "" ||
		len(pod.TopologySpreadConstraints) > 0 || pod.Containers[0].SecurityContext != nil || len(pod.Containers[0].Resources.Requests) > 0 {
		t.Errorf("something is left of what was taken away: %+v", pod)
	}
	if want := "docker.io/pipeguard/webhook:0.1.0-dev"; pod.Containers[0].Image != want {
		t.Errorf("the image is %s, want %s", pod.Containers[0].Image, want)
	}
}

// Keys of the user's own in mappings: no template may take a null for a text.
func TestNullsOfTheUsersOwn(t *testing.T) {
	for _, value := range []string{
		`nodeSelector={"pool":null}`, `podLabels={"a":null}`, `podAnnotations={"a":null}`, `commonLabels={"a":null}`, `resources={"requests":null}`,
		`resources={"limits":{"memory":null}}`, `affinity={"nodeAffinity":null}`, `serviceAccountAnnotations={"a":null}`, `podSecurityContext={"runAsUser":null}`,
		`policies={"a":null}`, `config={"logLevel":null}`, `config={"audit":null}`, `drivers.smb={"enabled":true,"images":null}`,
		`drivers.smb={"enabled":true,"namespace":null}`, `system.calico={"enabled":true,"serviceAccounts":null}`, `node.config={"acl":null}`,
		`parameters.allowedNamespaces={"a":null}`, `tolerations=[null]`, `imagePullSecrets=[null]`, `parameters.guardedPipes=[null]`,
		`topologySpread.topologyKeys=[null]`, `networkPolicy.metricsFrom=[null]`, `certificates.certManager.issuerRef={"name":null}`,
	} {
		stream, err := template(t, "--set-json", value)
		if err == nil {
			for _, o := range objects(t, stream) { // nulls that are the user's own are the API server's to take or refuse
				if check := typed[fmt.Sprint(o["apiVersion"])+"/"+o.kind()]; check != nil {
					check(t, o)
				}
			}
			continue
		}
		path, _, _ := strings.Cut(value, "=")
		if says := err.Error(); strings.Contains(says, "nil pointer") || strings.Contains(says, "error calling") && !strings.Contains(says, "error calling fail") ||
			!strings.Contains(says, strings.ReplaceAll(path, ".", "/")) && !strings.Contains(says, path) {
			t.Errorf("%s: the refusal does not say what it is about: %v", value, err)
		}
	}
}
