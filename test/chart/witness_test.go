package chart_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
	"github.com/pipeguard/pipeguard/internal/controller/witness"
)

// logKey makes the key of a node's log.
func logKey(t *testing.T, origin string) *evidence.Key {
	t.Helper()
	key, err := evidence.NewKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// witnessed are values with a witness that knows these keys.
func witnessed(t *testing.T, keys []string, more ...string) []string {
	t.Helper()
	text, err := json.Marshal(append([]string{}, keys...))
	if err != nil {
		t.Fatal(err)
	}
	return append(set(append([]string{"witness.enabled=true"}, more...)...), "--set-json", "witness.nodeKeys="+string(text))
}

func TestWithoutAWitnessNothingSpeaksOfIt(t *testing.T) {
	for _, o := range render(t) {
		if strings.Contains(o.name(), "witness") {
			t.Errorf("there is %s", o.id())
		}
	}
	all := render(t)
	spec := theWebhook(t, all)
	if witness, ok := webhookConfig(t, all, "pipeguard-webhook")["witness"]; ok {
		t.Errorf("%q", witness)
	}
	for _, v := range spec.Volumes {
		if strings.Contains(v.Name, "witness") {
			t.Errorf("there is the volume %s", v.Name)
		}
	}
}

func TestTheWebhookCosignsWithTheOperatorsKey(t *testing.T) {
	key := logKey(t, evidence.Origin("win-1")).LogKey()
	for name, c := range map[string]struct {
		args    []string
		want    map[string]any
		hasKeys bool
	}{
		"keys": {witnessed(t, []string{key}),
			map[string]any{"key": "/etc/pipeguard/witness/key", "nodeKeys": "/etc/pipeguard/witness-keys/keys"}, true},
		"trust": {witnessed(t, nil, "witness.trustFirstUse=true"),
			map[string]any{"key": "/etc/pipeguard/witness/key", "trustFirstUse": true}, false},
		"both": {witnessed(t, []string{key}, "witness.trustFirstUse=true"),
			map[string]any{"key": "/etc/pipeguard/witness/key", "nodeKeys": "/etc/pipeguard/witness-keys/keys", "trustFirstUse": true}, true},
	} {
		all := render(t, c.args...)
		spec := theWebhook(t, all)
		if diff := cmp.Diff(c.want, webhookConfig(t, all, "pipeguard-webhook")["witness"]); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == "witness-key" })
		if i < 0 {
			t.Fatalf("%s: volumes %+v", name, spec.Volumes)
		}
		isOptional := true
		secret := &corev1.SecretVolumeSource{SecretName: "pipeguard-witness-key", Optional: &isOptional, Items: []corev1.KeyToPath{{Key: "key", Path: "key"}}}
		if diff := cmp.Diff(secret, spec.Volumes[i].Secret); diff != "" {
			t.Errorf("%s: a missing key must not keep the webhook from reviews, and no other key of the Secret is its (-want +got):\n%s", name, diff)
		}
		for volume, path := range map[string]string{"witness-key": "/etc/pipeguard/witness", "witness-keys": "/etc/pipeguard/witness-keys"} {
			mount := corev1.VolumeMount{Name: volume, MountPath: path, ReadOnly: true}
			isThere := slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return cmp.Equal(m, mount) })
			if isThere != (volume == "witness-key" || c.hasKeys) {
				t.Errorf("%s: %s is mounted: %t", name, volume, isThere)
			}
		}
		for _, o := range all {
			if o.kind() == "Secret" && o.name() == "pipeguard-witness-key" {
				t.Errorf("%s: the chart makes the key", name)
			}
		}
	}
}

func TestTheWebhookReadsTheKeysThatTheValueHas(t *testing.T) {
	keys := []string{logKey(t, evidence.Origin("win-1")).LogKey(), logKey(t, evidence.Origin("win-1")).LogKey(), logKey(t, "example.com/other").LogKey()}
	text, _ := one(t, render(t, witnessed(t, keys)...), "ConfigMap", "pipeguard-webhook-witness-keys").at("data", "keys").(string)
	parsed, err := evidence.ParseKeys(text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got []string
	for _, k := range parsed.Describe() {
		got = append(got, k.Key)
	}
	if diff := cmp.Diff(keys, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheWebhookMayWriteWhatTheWitnessRemembers(t *testing.T) {
	first, second, other := logKey(t, evidence.Origin("win-1")), logKey(t, evidence.Origin("win-1")), logKey(t, "example.com/größe")
	keys := []string{first.LogKey(), second.LogKey(), other.LogKey()}
	named := strings.Join(append(witness.ShardNames(), witness.ConfigMapName(first.Name()), witness.ConfigMapName(other.Name())), ",")
	for name, c := range map[string]struct {
		args []string
		want []string
		also string // names beside the witness's own
	}{
		"keys":         {witnessed(t, keys), []string{"/configmaps[" + named + "]: get update", "/configmaps: create"}, ""},
		"trust":        {witnessed(t, keys, "witness.trustFirstUse=true"), []string{"/configmaps: get update", "/configmaps: create"}, ""},
		"with bundles": {witnessed(t, keys, "bundles.enabled=true", "bundles.pools={a,b}"), []string{"/configmaps[" + named + "]: get update", "/configmaps: create"}, " || object.metadata.name in ['pipeguard-bundle-a','pipeguard-bundle-b']"},
	} {
		all := render(t, c.args...)
		role := decode[rbacv1.Role](t, one(t, all, "Role", "pipeguard-webhook-witness"))
		if diff := cmp.Diff(c.want, rights(role.Rules)); diff != "" || role.Namespace != namespace {
			t.Errorf("%s: in the namespace %s (-want +got):\n%s", name, role.Namespace, diff)
		}
		binding := decode[rbacv1.RoleBinding](t, one(t, all, "RoleBinding", "pipeguard-webhook-witness"))
		subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "pipeguard-webhook", Namespace: namespace}}
		if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.Namespace != namespace || binding.RoleRef.Name != role.Name || binding.RoleRef.Kind != "Role" {
			t.Errorf("%s: bound %+v", name, binding)
		}
		policy := decode[admissionregistrationv1.ValidatingAdmissionPolicy](t, one(t, all, "ValidatingAdmissionPolicy", "pipeguard-webhook-witness"))
		if got, want := policy.Spec.Validations[0].Expression, "object.metadata.name.matches('^pipeguard-witness-([0-9a-f]{40}|logs-[0-7])$')"+c.also; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
		if !strings.Contains(policy.Spec.MatchConditions[0].Expression, "'system:serviceaccount:"+namespace+":pipeguard-webhook'") {
			t.Errorf("%s: it is for %s", name, policy.Spec.MatchConditions[0].Expression)
		}
		if bound := decode[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, one(t, all, "ValidatingAdmissionPolicyBinding", "pipeguard-webhook-witness")); bound.Spec.PolicyName != policy.Name {
			t.Errorf("%s: bound is %s", name, bound.Spec.PolicyName)
		}
	}
}

func TestWrongValuesOfTheWitnessAreRefused(t *testing.T) {
	key := logKey(t, evidence.Origin("win-1"))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"enabled by a string":     {[]string{"--set-json", `witness.enabled="true"`}, "specifications of the schema"},
		"an unknown value":        {[]string{"--set-json", `witness.key="x"`}, "specifications of the schema"},
		"keys that are a string":  {[]string{"--set-json", `witness.nodeKeys="x"`}, "specifications of the schema"},
		"a Secret that is a key":  {[]string{"--set-json", `witness.existingSecret="A B"`}, "specifications of the schema"},
		"a witness left out":      {[]string{"--set-json", `witness=null`}, "specifications of the schema"},
		"no log that it can know": {set("witness.enabled=true"), "it would know no log"},
		"a witness's key":         {witnessed(t, []string{key.LogKey(), key.WitnessKey()}), "witness.nodeKeys[1]: want the verifier key of a log"},
		"half a key":              {witnessed(t, []string{key.LogKey()[:50]}), "witness.nodeKeys[0]: want the verifier key of a log"},
		"two keys in one":         {witnessed(t, []string{key.LogKey() + "\n" + key.LogKey()}), "witness.nodeKeys[0]: want the verifier key of a log"},
		"a private key":           {witnessed(t, []string{strings.TrimSpace(string(key.Secret()))}), "witness.nodeKeys[0]: want the verifier key of a log"},
	} {
		_, err := template(t, c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		secret := string(key.Secret())
		said := err.Error()[strings.LastIndex(err.Error(), "\n")+1:]
		if strings.Contains(said, secret[len(secret)-20:]) {
			t.Errorf("%s: the error shows the key", name)
		}
	}
}
