package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/test/bundletest"
)

// bundleKeys are public keys, in PEM.
func bundleKeys(t *testing.T, n int) string {
	t.Helper()
	var text strings.Builder
	for range n {
		key := bundletest.NewKey(t)
		text.Write(key.PublicPEM())
	}
	return text.String()
}

// valuesFile writes values, since keys are too long a story for --set.
func valuesFile(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "--values=" + file
}

// withBundles are values of a release whose nodes decide by bundles.
func withBundles(t *testing.T, keys string) string {
	t.Helper()
	return valuesFile(t, map[string]any{
		"node":    map[string]any{"enabled": true, "bundle": map[string]any{"enabled": true, "keys": keys}},
		"bundles": map[string]any{"enabled": true, "pools": []string{"gpu", "default"}},
	})
}

func TestNodesGetBundlesAndTheKeysToBelieveThem(t *testing.T) {
	keys := bundleKeys(t, 2)
	for name, c := range map[string]struct {
		args []string
		want config.Bundle
	}{
		"as it is": {nil, config.Bundle{Pool: "default"}},
		"another pool and namespace": {set("node.bundle.pool=gpu", "node.namespace="+nodeNamespace),
			config.Bundle{Pool: "gpu"}},
		"a node that lost its directory": {set("node.config.bundle.minimumRevision=1767323045", `node.config.bundle.dir=D:\\bundles`),
			config.Bundle{Pool: "default", MinimumRevision: 1767323045, Dir: `D:\bundles`}},
		"made by somebody else": {set("bundles.enabled=false"), config.Bundle{Pool: "default"}},
	} {
		t.Run(name, func(t *testing.T) {
			all := render(t, append([]string{withBundles(t, keys)}, c.args...)...)
			p, _ := proxyConfig(t, all, "pipeguard-node")
			want := c.want
			want.Keys, want.File = `C:\ProgramData\Pipeguard\bundle.key.pub`, `C:\ProgramData\Pipeguard\bundle.tar.gz`
			if diff := cmp.Diff(want, p.Bundle); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			mounted, _ := one(t, all, "ConfigMap", "pipeguard-node").at("data", "bundle.key.pub").(string)
			if _, err := bundle.ParseKeys([]byte(mounted)); err != nil || strings.TrimSpace(mounted) != strings.TrimSpace(keys) {
				t.Errorf("keys: %v\n%s", err, mounted)
			}
			d := decode[appsv1.DaemonSet](t, one(t, all, "DaemonSet", "pipeguard-node"))
			spec := d.Spec.Template.Spec
			v := spec.Volumes[1]
			if v.ConfigMap == nil || v.ConfigMap.Name != "pipeguard-bundle-"+want.Pool || v.ConfigMap.Optional == nil || !*v.ConfigMap.Optional {
				t.Errorf("volume %+v: a node without it must still be installed", v)
			}
			if m := spec.Containers[0].VolumeMounts[1]; m.Name != v.Name || m.MountPath != "/pipeguard/bundle" || !m.ReadOnly || m.SubPath != "" {
				t.Errorf("mount %+v", m)
			}
			args := spec.Containers[0].Args
			at := slices.Index(args, "--bundle-from")
			if at < 0 || cmp.Diff([]string{
				sandbox + `\pipeguard\bundle\bundle.tar.gz`, "--bundle-keys-from", sandbox + `\pipeguard\config\bundle.key.pub`,
			}, args[at+1:at+4]) != "" {
				t.Errorf("arguments %q", args)
			}
			if slices.Index(args, "--") < at {
				t.Error("they are the service's")
			}
		})
	}
}

func TestBundlesThatNoNodeCouldHaveAreRefused(t *testing.T) {
	keys := bundleKeys(t, 1)
	private := "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
	for name, c := range map[string]struct {
		keys string
		args []string
		want string
	}{
		"no keys":                         {"", nil, "without node.bundle.keys"},
		"blanks for keys":                 {"\n", nil, "without node.bundle.keys"},
		"a pool that is not published":    {keys, set("node.bundle.pool=other"), "bundles.pools has only gpu, default"},
		"a bundle in another namespace":   {keys, set("bundles.namespace=elsewhere"), "where alone they can mount"},
		"another bundle's pool":           {keys, set("node.config.bundle.pool=gpu"), "node.config.bundle.pool"},
		"a bundle by HTTP beside it":      {keys, set("node.config.bundle.url=https://x/bundles/a"), "node.config.bundle.url"},
		"other keys beside it":            {keys, set(`node.config.bundle.keys=C:\\k.pem`), "node.config.bundle.keys"},
		"a private key":                   {private, nil, "node.bundle.keys: want"},
		"a private key beside the public": {keys + private, nil, "node.bundle.keys: want"},
		"words":                           {"default", nil, "node.bundle.keys: want"},
		"a pool that is no name":          {keys, set("node.bundle.pool=A/B"), "pool"},
		"no pool":                         {keys, set("node.bundle.pool="), "pool"},
	} {
		_, err := template(t, append([]string{withBundles(t, c.keys)}, c.args...)...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

func TestWithoutBundlesNodesDecideByTheirOwnConfiguration(t *testing.T) {
	all := render(t, set("node.enabled=true", "bundles.enabled=true")...)
	p, _ := proxyConfig(t, all, "pipeguard-node")
	if p.Bundle.IsSet() || one(t, all, "ConfigMap", "pipeguard-node").at("data", "bundle.key.pub") != nil {
		t.Errorf("%+v", p.Bundle)
	}
	d := decode[appsv1.DaemonSet](t, one(t, all, "DaemonSet", "pipeguard-node"))
	if strings.Contains(strings.Join(d.Spec.Template.Spec.Containers[0].Args, " "), "bundle") {
		t.Errorf("%q", d.Spec.Template.Spec.Containers[0].Args)
	}
}
