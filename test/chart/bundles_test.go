package chart_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// bundled are values with bundles.
func bundled(more ...string) []string {
	return set(append([]string{"bundles.enabled=true"}, more...)...)
}

// theWebhook is the pod of a rendering's webhook.
func theWebhook(t *testing.T, all []object) corev1.PodSpec {
	t.Helper()
	return decode[appsv1.Deployment](t, one(t, all, "Deployment", "pipeguard-webhook")).Spec.Template.Spec
}

func TestWithoutBundlesNothingSpeaksOfThem(t *testing.T) {
	stream, err := template(t)
	if err != nil {
		t.Fatal(err)
	}
	if i := strings.Index(stream, "bundles:"); i >= 0 {
		t.Errorf("…%s…", stream[i:min(len(stream), i+100)])
	}
	for _, o := range render(t) {
		if strings.Contains(o.name(), "bundle") {
			t.Errorf("there is %s", o.id())
		}
	}
	for _, v := range theWebhook(t, render(t)).Volumes {
		if strings.Contains(v.Name, "bundle") {
			t.Errorf("there is the volume %s", v.Name)
		}
	}
}

func TestTheWebhookSignsWithTheOperatorsKey(t *testing.T) {
	all := render(t, bundled()...)
	spec := theWebhook(t, all)
	want := map[string]any{
		"key": "/etc/pipeguard/bundle/key.pem", "pools": []any{"default"}, "life": "168h", "minimumRevision": 0.,
		"namespace": namespace, "serve": false,
	}
	if diff := cmp.Diff(want, webhookConfig(t, all, "pipeguard-webhook")["bundles"]); diff != "" {
		t.Error(diff)
	}
	i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "bundle-key" })
	if i < 0 || spec.Volumes[i].Secret == nil {
		t.Fatalf("volumes %+v", spec.Volumes)
	}
	isOptional := true
	secret := &corev1.SecretVolumeSource{SecretName: "pipeguard-bundle-key", Optional: &isOptional, Items: []corev1.KeyToPath{{Key: "key.pem", Path: "key.pem"}}}
	if diff := cmp.Diff(secret, spec.Volumes[i].Secret); diff != "" {
		t.Errorf("a missing key must not keep the webhook from reviews, and no other key of the Secret is its (-want +got):\n%s", diff)
	}
	mount := corev1.VolumeMount{Name: "bundle-key", MountPath: "/etc/pipeguard/bundle", ReadOnly: true}
	if !slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return cmp.Equal(m, mount) }) {
		t.Errorf("mounts %+v", spec.Containers[0].VolumeMounts)
	}
}

// A key that the chart made would be another with each rendering, and nodes would refuse what it signs.
func TestTheChartMakesNoKey(t *testing.T) {
	for _, o := range render(t, bundled("bundles.keySecret=signing")...) {
		if o.kind() == "Secret" && o.name() == "signing" {
			t.Error("the chart makes the Secret")
		}
	}
}

func TestValuesOfBundlesReachTheWebhook(t *testing.T) {
	all := render(t, everything)
	spec := decode[appsv1.Deployment](t, one(t, all, "Deployment", "guard-webhook")).Spec.Template.Spec
	want := map[string]any{
		"key": "/etc/pipeguard/bundle/key.pem", "pools": []any{"default", "gpu"}, "life": "36h", "minimumRevision": 1767323045.,
		"namespace": "guard-bundles", "serve": true, "modules": "/etc/pipeguard/bundle-modules",
	}
	if diff := cmp.Diff(want, webhookConfig(t, all, "guard-webhook")["bundles"]); diff != "" {
		t.Error(diff)
	}
	if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "signing" }) ||
		!slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == "node-rules" }) {
		t.Errorf("volumes %+v", spec.Volumes)
	}
}

func TestTheWebhookMayWriteTheBundlesOfItsPools(t *testing.T) {
	for name, c := range map[string]struct {
		args      []string
		namespace string
		names     string
	}{
		"alone":              {bundled(), namespace, "pipeguard-bundle-default"},
		"two pools":          {bundled("bundles.pools={a,b-2}"), namespace, "pipeguard-bundle-a,pipeguard-bundle-b-2"},
		"beside the nodes":   {bundled("node.enabled=true", "node.namespace="+nodeNamespace), nodeNamespace, "pipeguard-bundle-default"},
		"in a namespace":     {bundled("bundles.namespace=elsewhere", "node.enabled=true", "node.namespace="+nodeNamespace), "elsewhere", "pipeguard-bundle-default"},
		"nodes, but no name": {bundled("node.enabled=true"), namespace, "pipeguard-bundle-default"},
	} {
		all := render(t, c.args...)
		role := decode[rbacv1.Role](t, one(t, all, "Role", "pipeguard-webhook-bundles"))
		want := []string{"/configmaps[" + c.names + "]: get update", "/configmaps: create"}
		if diff := cmp.Diff(want, rights(role.Rules)); diff != "" || role.Namespace != c.namespace {
			t.Errorf("%s: in the namespace %s (-want +got):\n%s", name, role.Namespace, diff)
		}
		binding := decode[rbacv1.RoleBinding](t, one(t, all, "RoleBinding", "pipeguard-webhook-bundles"))
		subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "pipeguard-webhook", Namespace: namespace}}
		if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.Namespace != c.namespace || binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "Role" {
			t.Errorf("%s: bound %+v", name, binding)
		}
		if got := webhookConfig(t, all, "pipeguard-webhook").at("bundles", "namespace"); got != c.namespace {
			t.Errorf("%s: the webhook writes elsewhere: %q", name, got)
		}
	}
}

func TestWrongValuesOfBundlesAreRefused(t *testing.T) {
	for name, value := range map[string]string{
		"enabled by a string":          `bundles.enabled="true"`,
		"an unknown value":             `bundles.key="x"`,
		"no pool":                      `bundles.pools=[]`,
		"pools that are a string":      `bundles.pools="default"`,
		"a pool twice":                 `bundles.pools=["a","a"]`,
		"a pool with a comma":          `bundles.pools=["a,b"]`,
		"a pool with a dot":            `bundles.pools=["a.b"]`,
		"a pool in capitals":           `bundles.pools=["Default"]`,
		"a pool that is too long":      `bundles.pools=["` + strings.Repeat("x", 64) + `"]`,
		"no Secret":                    `bundles.keySecret=""`,
		"a key itself":                 `bundles.keySecret="-----BEGIN PRIVATE KEY-----"`,
		"a life without a unit":        `bundles.life="600"`,
		"a revision below 0":           `bundles.minimumRevision=-1`,
		"a revision that is no number": `bundles.minimumRevision="1"`,
		"a namespace in capitals":      `bundles.namespace="Nodes"`,
		"Rego as a list":               `bundles.modulesConfigMap=["x"]`,
		"bundles that are left out":    `bundles=null`,
	} {
		if _, err := template(t, "--set-json", value); err == nil {
			t.Errorf("%s: %s is taken", name, value)
		} else if !strings.Contains(err.Error(), "specifications of the schema") {
			t.Errorf("%s: refused for another reason: %v", name, err)
		}
	}
}
