package chart_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/proxy/acl/profiles"
)

// driver is what a profile lets pass.
type driver struct {
	policy, namespace, serviceAccount, container string
	pipes                                        []string // without csi-proxy-
}

// drivers are written out from the drivers' own manifests, by the name of the value.
var drivers = map[string]driver{
	"azuredisk": {"azuredisk", "kube-system", "csi-azuredisk-node-sa", "azuredisk",
		[]string{"filesystem-v1", "disk-v1", "volume-v1", "filesystem-v1beta1", "disk-v1beta2", "volume-v1beta2"}},
	"azurefile": {"azurefile", "kube-system", "csi-azurefile-node-sa", "azurefile",
		[]string{"filesystem-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"}},
	"smb": {"smb", "kube-system", "csi-smb-node-sa", "smb",
		[]string{"filesystem-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"}},
	"awsEbs": {"aws-ebs", "kube-system", "ebs-csi-node-sa", "ebs-plugin",
		[]string{"disk-v1", "volume-v1", "filesystem-v1"}},
	"gcePd": {"gce-pd", "gce-pd-csi-driver", "csi-gce-pd-node-sa-win", "gce-pd-driver",
		[]string{"volume-v1", "filesystem-v1", "disk-v1", "volume-v1beta1", "filesystem-v1beta1", "disk-v1beta2"}},
	"vsphere": {"vsphere", "vmware-system-csi", "vsphere-csi-node", "vsphere-csi-node",
		[]string{"volume-v1", "filesystem-v1", "disk-v1", "system-v1alpha1"}},
	"trident": {"trident", "trident", "trident-node-windows", "trident-main",
		[]string{"filesystem-v1", "volume-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"}},
}

// pipePolicy is what the webhook is to make of the profile; what it says of nodes is that of the nodes' own profile.
func (d driver) pipePolicy(t *testing.T, o profiles.Options) admission.PipePolicy {
	t.Helper()
	o.Name = d.policy
	rules, err := profiles.Rules(o)
	if err != nil {
		t.Fatal(err)
	}
	s := access.Subject{Name: "node"}
	for _, rule := range rules {
		for _, who := range rule.Callers {
			s.Namespace, s.ServiceAccounts, s.Containers = who.Namespace, []string{who.ServiceAccount}, []string{who.Container}
		}
		s.Methods, s.PathPrefixes = append(s.Methods, rule.Operations...), append(s.PathPrefixes, rule.Paths...)
	}
	s.Shares = o.Shares
	if s.Namespace != d.namespace || s.ServiceAccounts[0] != d.serviceAccount || s.Containers[0] != d.container {
		t.Errorf("%s is %+v on nodes", d.policy, s)
	}
	p := admission.PipePolicy{Action: admission.ActionDeny, Requirement: admission.AllowedNamespace, Subjects: []access.Subject{s}}
	for _, pipe := range d.pipes {
		p.Pipes = append(p.Pipes, "csi-proxy-"+pipe)
	}
	return p
}

// inAnyOrder are lists of methods, pipes and shares, whose order means nothing.
var inAnyOrder = cmpopts.SortSlices(strings.Compare)

func parameters(t *testing.T, all []object, name string) admission.Parameters {
	t.Helper()
	text, _ := one(t, all, "ConfigMap", name).at("data", "parameters.yaml").(string)
	p, err := admission.ParseParameters([]byte(text), policyset.ReadPipePolicy)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return p
}

func TestWithoutValuesTheParametersAreTheProgramsOwn(t *testing.T) {
	got := parameters(t, render(t), "pipeguard-parameters")
	if diff := cmp.Diff(admission.DefaultParameters(), got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-program +chart):\n%s", diff)
	}
}

func TestAProfileAllowsItsDriverAndNobodyElse(t *testing.T) {
	for value, d := range drivers {
		got := parameters(t, render(t, set("drivers."+value+".enabled=true")...), "pipeguard-parameters")
		want := admission.DefaultParameters()
		want.PipePolicies = map[string]admission.PipePolicy{d.policy: d.pipePolicy(t, profiles.Options{})}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), inAnyOrder, cmpopts.IgnoreFields(admission.PipePolicy{}, "Warnings")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", value, diff)
		}
	}
}

func TestEveryValueOfParametersArrives(t *testing.T) {
	want := admission.Parameters{
		GuardedPipes:      []string{"csi-proxy*", "docker_engine"},
		Requirement:       admission.AllowedNamespace,
		AllowedNamespaces: map[string]admission.Subjects{"kube-system": {ServiceAccounts: []string{"csi-smb-node-sa"}}, "legacy": {}},
		HostProcess:       admission.HostProcessWarn,
		HostProcessAllowed: map[string]admission.Subjects{
			"kube-system": {ServiceAccounts: []string{"kube-proxy"}}, "guard-nodes": {ServiceAccounts: []string{"other", "guard-node"}},
		},
		EqualPower:      admission.EqualPowerDeny,
		EqualPowerPipes: []string{"*"},
		EqualPowerPaths: []string{`C:\`, `C:\Windows`, `C:\k\secrets`, `D:\data`},
		PipePolicies:    map[string]admission.PipePolicy{},
	}
	for value, d := range drivers {
		o := profiles.Options{KubeletDir: `D:\k`}
		if value == "azurefile" {
			o.Shares = []string{`\\*.file.example\data`, `\\files.example\*`}
		}
		p := d.pipePolicy(t, o)
		switch value {
		case "azuredisk":
			p.Subjects[0].Images = []string{"mcr.microsoft.com/*"}
		case "smb":
			p.Subjects[0].ServiceAccounts = nil
		case "trident":
			p.Subjects[0].Namespace = "netapp"
		}
		want.PipePolicies[d.policy] = p
	}
	want.PipePolicies["nightly-backup"] = admission.PipePolicy{
		Pipes: []string{"csi-proxy-disk-v1", "backup*"}, Action: admission.ActionWarn, Requirement: admission.PrivilegedAndAllowedNamespace,
		Subjects: []access.Subject{{
			Name: "agent", Namespace: "backup", ServiceAccounts: []string{"agent"}, Containers: []string{"agent"},
			Images: []string{"registry.example.com/backup/*"}, Owner: "storage@example.com", Reason: "until the driver takes snapshots",
			ExpiresAt:  time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC),
			Permission: access.Permission{Methods: []string{"GetDiskStats"}, PathPrefixes: []string{`C:\var\lib\kubelet`}, RequireToken: true},
		}},
		LogOnly: true,
	}
	got := parameters(t, render(t, everything), "guard-parameters")
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), inAnyOrder, cmpopts.IgnoreFields(admission.PipePolicy{}, "Warnings")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAPolicyCannotTakeTheNameOfAProfile(t *testing.T) {
	args := append(set("drivers.awsEbs.enabled=true"), "--set-json", `policies.aws-ebs={"pipes":["x"]}`)
	if _, err := template(t, args...); err == nil {
		t.Error("the profile was replaced")
	}
}

func TestSharesOfADriverThatMapsNoneAreRefused(t *testing.T) {
	shares := func(value, list string) []string {
		return []string{"--set-json", "drivers." + value + ".shares=" + list}
	}
	if _, err := template(t, append(set("drivers.azuredisk.enabled=true"), shares("azuredisk", `["\\\\a\\b"]`)...)...); err == nil || !strings.Contains(err.Error(), "maps no shares") {
		t.Errorf("a driver of disks: %v", err)
	}
	if _, err := template(t, append(set("drivers.smb.enabled=true"), shares("smb", `["\\\\*\\b"]`)...)...); err == nil {
		t.Error("shares of every server are taken")
	}
}
