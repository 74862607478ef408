package chart_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/test/harness"
)

const (
	tokenFile = `C:\ProgramData\Pipeguard\kubelet.token`
	caFile    = `C:\ProgramData\Pipeguard\kubelet-ca.crt`
)

// nodeWith renders the node component with values.
func nodeWith(t *testing.T, values ...string) ([]object, config.Proxy, *acl.Policy) {
	t.Helper()
	all := render(t, set(append(values, "node.enabled=true")...)...)
	p, policy := proxyConfig(t, all, "pipeguard-node")
	return all, p, policy
}

func TestByDefaultANodeAsksItsRuntimeAndItsKubelet(t *testing.T) {
	_, p, _ := nodeWith(t)
	want := config.Containers{
		Endpoint: `\\.\pipe\containerd-containerd`,
		Kubelet:  config.Kubelet{URL: "https://127.0.0.1:10250", CAFile: caFile, TokenFile: tokenFile},
	}
	if diff := cmp.Diff(want, p.Containers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for values, change := range map[string]func(*config.Containers){
		`node.identity.endpoint=\\\\.\\pipe\\other`:               func(c *config.Containers) { c.Endpoint = `\\.\pipe\other` },
		`node.config.containers.endpoint=\\\\.\\pipe\\other`:      func(c *config.Containers) { c.Endpoint = `\\.\pipe\other` },
		`node.identity.kubelet=https://10.0.0.1:10250`:            func(c *config.Containers) { c.Kubelet.URL = "https://10.0.0.1:10250" },
		`node.config.containers.snapshot=C:\\k\\a.json`:           func(c *config.Containers) { c.Snapshot = `C:\k\a.json` },
		`node.identity.enabled=false`:                             func(c *config.Containers) { *c = config.Containers{} },
		`node.config.containers.kubelet.url=https://10.0.0.1:443`: func(c *config.Containers) { c.Kubelet = config.Kubelet{URL: "https://10.0.0.1:443"} },
	} {
		c := want
		change(&c)
		all := render(t, append(set("node.enabled=true"), "--skip-schema-validation", "--set", values)...)
		content, _ := one(t, all, "ConfigMap", "pipeguard-node").at("data", "proxy.yaml").(string)
		p, err := config.ParseProxy("proxy.yaml", []byte(content))
		if err != nil {
			t.Errorf("%s: %v", values, err)
		}
		if diff := cmp.Diff(c, p.Containers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", values, diff)
		}
	}
}

// The files that the configuration names are those that the installer is told to keep, by the same pod.
func TestTheInstallerBringsWhatTheConfigurationNames(t *testing.T) {
	for name, c := range map[string]struct {
		values  []string
		brought bool
		right   string // that is granted, if any
	}{
		"by default":      {nil, true, "nodes/pods"},
		"older kubelets":  {[]string{"node.identity.right=nodes/proxy"}, true, "nodes/proxy"},
		"without reports": {[]string{"node.reports.enabled=false"}, true, "nodes/pods"},
		"switched off":    {[]string{"node.identity.enabled=false"}, false, ""},
		"another credential": {[]string{`node.config.containers.endpoint=\\\\.\\pipe\\a`, "node.config.containers.kubelet.url=https://a:1", `node.config.containers.kubelet.caFile=C:\\ca`,
			`node.config.containers.kubelet.tokenFile=C:\\token`}, false, ""},
	} {
		all, p, _ := nodeWith(t, c.values...)
		args := decode[appsv1.DaemonSet](t, one(t, all, "DaemonSet", "pipeguard-node")).Spec.Template.Spec.Containers[0].Args
		if got := slices.Contains(args, "--identity-from"); got != c.brought || (p.Containers.Kubelet.TokenFile == tokenFile) != c.brought {
			t.Errorf("%s: brought %t, configured %+v", name, got, p.Containers.Kubelet)
		}
		var granted []string
		for _, o := range all {
			if o.kind() == "ClusterRole" && isOfNode(o) {
				granted = rights(decode[rbacv1.ClusterRole](t, o).Rules)
			}
		}
		granted = slices.DeleteFunc(granted, func(right string) bool { return strings.HasPrefix(right, "pipeguard.dev/") })
		if want := strings.TrimSuffix("/"+c.right+": get", "/: get"); strings.Join(granted, " ") != want {
			t.Errorf("%s: granted are %q, want %q", name, granted, want)
		}
	}
	_, err := template(t, set("node.enabled=true", "node.identity.right=*")...)
	if err == nil {
		t.Error("any right is granted")
	}
}

func TestTheKubeletsCertificatesLieWhereItsDirectoryIs(t *testing.T) {
	for values, want := range map[string][]string{
		`node.kubeletPath=D:\\k`:                                {`D:\k\pki\kubelet-server-current.pem`, `D:\k\pki\kubelet.crt`},
		`node.identity.kubeletCertificates={C:\\k\\pki\\a.crt}`: {`C:\k\pki\a.crt`},
	} {
		all, _, _ := nodeWith(t, values)
		args := decode[appsv1.DaemonSet](t, one(t, all, "DaemonSet", "pipeguard-node")).Spec.Template.Spec.Containers[0].Args
		var got []string
		for i, arg := range args {
			if arg == "--kubelet-certificate" {
				got = append(got, args[i+1])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", values, diff)
		}
	}
}

// A driver that is enabled is named by its service account and container, and block drivers may format.
func TestEnabledDriversAreNamedByServiceAccountAndContainer(t *testing.T) {
	for name, d := range drivers {
		_, p, policy := nodeWith(t, "drivers."+name+".enabled=true")
		if len(p.ACL.Profiles) != 1 || p.ACL.Profiles[0].Name != name || len(p.ACL.Rules) > 0 {
			t.Errorf("%s: %+v", name, p.ACL)
			continue
		}
		who := p.Spec().Rules[0].Callers[0]
		want := acl.CallerPattern{Namespace: d.namespace, ServiceAccount: d.serviceAccount, Container: d.container, Assurance: "pod"}
		if diff := cmp.Diff(want, who); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		formats := slices.Contains([]string{"azuredisk", "aws-ebs", "gce-pd", "vsphere"}, name)
		if named, _ := policy.Naming("volume", "FormatVolume"); (len(named) == 1) != formats {
			t.Errorf("%s: %d callers are named for FormatVolume", name, len(named))
		}
	}
}

func TestWhatIsSetOfADriverIsInItsRules(t *testing.T) {
	_, p, _ := nodeWith(t, "drivers.smb.enabled=true", "drivers.smb.namespace=storage", "drivers.smb.serviceAccounts={a,b}", "drivers.smb.containers={driver}",
		`drivers.smb.shares={\\\\files\\*}`, `node.kubeletPath=D:\\k`)
	var got []string
	for _, profile := range p.ACL.Profiles {
		got = append(got, strings.Join([]string{profile.Namespace, profile.ServiceAccount, profile.Container, profile.KubeletDir}, " ")+" "+strings.Join(profile.Shares, ","))
	}
	if diff := cmp.Diff([]string{`storage a driver D:\k \\files\*`, `storage b driver D:\k \\files\*`}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, values := range map[string][]string{
		"a profile by its name":       {"node.config.acl.profiles={azuredisk}"},
		"a profile with a difference": {"node.config.acl.profiles[0].name=azuredisk", "node.config.acl.profiles[0].namespace=mine"},
	} {
		if _, p, _ := nodeWith(t, append(values, "drivers.azuredisk.enabled=true")...); len(p.ACL.Profiles) != 1 {
			t.Errorf("%s: %+v", name, p.ACL.Profiles)
		}
	}
	if _, err := template(t, set("node.enabled=true", "drivers.smb.enabled=true", "drivers.smb.containers={a,b}")...); err == nil || !strings.Contains(err.Error(), "node.driverRules.enabled=false") {
		t.Errorf("two containers: %v", err)
	}
}

// program is the proxy of this checkout, built once.
func program(t *testing.T) string {
	t.Helper()
	exe, err := harness.Build(t.Context(), t.TempDir(), "./cmd/proxy")
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// checked are the renderings that a new installation begins with, by the file of cmd/proxy's tests that has one of them.
func checked() map[string][]string {
	values := map[string][]string{"": nil, "chart-azuredisk.yaml": {"drivers.azuredisk.enabled=true"}}
	for name := range drivers {
		if name != "azuredisk" {
			values["driver "+name] = []string{"drivers." + name + ".enabled=true"}
		}
	}
	return values
}

func TestCheckConfigHasNoWarningAboutWhatNodesGet(t *testing.T) {
	proxy := program(t)
	for name, values := range checked() {
		all, _, _ := nodeWith(t, values...)
		content, _ := one(t, all, "ConfigMap", "pipeguard-node").at("data", "proxy.yaml").(string)
		file := filepath.Join(t.TempDir(), "proxy.yaml")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), proxy, "check-config", file).CombinedOutput()
		if err != nil || strings.Contains(string(out), "\nwarning ") || !strings.Contains(string(out), "service accounts from https://127.0.0.1:10250") {
			t.Errorf("%q: %v\n%s", name, err, out)
		}
	}
}

// The tests of the proxy have a driver format a volume by this very configuration.
func TestTheProxyIsTestedWithWhatNodesGet(t *testing.T) {
	for name, values := range checked() {
		if filepath.Ext(name) != ".yaml" {
			continue
		}
		all, _, _ := nodeWith(t, values...)
		want, _ := one(t, all, "ConfigMap", "pipeguard-node").at("data", "proxy.yaml").(string)
		file := filepath.Join(root, "cmd", "proxy", "testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is not what the chart makes; run with -update (-chart +file):\n%s", file, diff)
		}
	}
}
