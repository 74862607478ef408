package chart_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/proxy/acl/profiles"
)

// driver is what a profile lets pass.
type driver struct {
	namespace, serviceAccount, container string
	pipes                                []string // without csi-proxy-
}

// drivers are written out from the drivers' own manifests, by their names.
var drivers = map[string]driver{
	"azuredisk": {"kube-system", "csi-azuredisk-node-sa", "azuredisk",
		[]string{"filesystem-v1", "disk-v1", "volume-v1", "filesystem-v1beta1", "disk-v1beta2", "volume-v1beta2"}},
	"azurefile": {"kube-system", "csi-azurefile-node-sa", "azurefile",
		[]string{"filesystem-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"}},
	"smb": {"kube-system", "csi-smb-node-sa", "smb",
		[]string{"filesystem-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"}},
	"aws-ebs": {"kube-system", "ebs-csi-node-sa", "ebs-plugin",
		[]string{"disk-v1", "volume-v1", "filesystem-v1"}},
	"gce-pd": {"gce-pd-csi-driver", "csi-gce-pd-node-sa-win", "gce-pd-driver",
		[]string{"volume-v1", "filesystem-v1", "disk-v1", "volume-v1beta1", "filesystem-v1beta1", "disk-v1beta2"}},
	"vsphere": {"vmware-system-csi", "vsphere-csi-node", "vsphere-csi-node",
		[]string{"volume-v1", "filesystem-v1", "disk-v1", "system-v1alpha1"}},
	"trident": {"trident", "trident-node-windows", "trident-main",
		[]string{"filesystem-v1", "volume-v1", "smb-v1", "filesystem-v1beta1", "smb-v1beta1"}},
}

// published is what a file of the chart has of a driver, or of pods of the system.
type published struct {
	Namespace                                       string
	ServiceAccounts, Pipes, Methods, RunAsUserNames []string
	Container                                       string
	Containers                                      map[string]publishedContainer
	Modes                                           map[string]map[string]publishedContainer
}

type publishedContainer struct{ Images, HostPaths []string }

// publishedIn reads drivers.yaml or system.yaml.
func publishedIn(t *testing.T, name string) (all map[string]published) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(chart, "files"), name)[name]), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// patterns are those of repositories, with any tag or digest or none.
func patterns(repositories []string) (images []string) {
	for _, r := range repositories {
		images = append(images, r, r+":*", r+"@*")
	}
	return images
}

// subjects are what is to become of the containers of some modes, by their names.
func (p published) subjects(kubelet string, modes ...string) map[string]access.Subject {
	all := map[string]access.Subject{}
	for _, mode := range modes {
		for name, c := range p.Modes[mode] {
			s, ok := all[name]
			if !ok {
				s = access.Subject{Name: name, Namespace: p.Namespace, ServiceAccounts: p.ServiceAccounts, Containers: []string{name}}
			}
			for _, image := range patterns(c.Images) {
				if !slices.Contains(s.Images, image) {
					s.Images = append(s.Images, image)
				}
			}
			for _, path := range c.HostPaths {
				if path = strings.Replace(path, `C:\var\lib\kubelet`, kubelet, 1); !slices.Contains(s.HostPaths, path) {
					s.HostPaths = append(s.HostPaths, path)
				}
			}
			if mode == "HostProcess" {
				s.HostProcess = &access.HostProcess{RunAsUserNames: p.RunAsUserNames}
			}
			all[name] = s
		}
	}
	return all
}

// profilePolicies are what the webhook is to make of a profile; what it says of nodes is that of the nodes' own profile.
func profilePolicies(t *testing.T, o profiles.Options, change func(*access.Subject), modes ...string) map[string]admission.PipePolicy {
	t.Helper()
	p, d := publishedIn(t, "drivers.yaml")[o.Name], drivers[o.Name]
	if modes == nil {
		modes = slices.Sorted(maps.Keys(p.Modes))
	}
	rules, err := profiles.Rules(o)
	if err != nil {
		t.Fatal(err)
	}
	kubelet := o.KubeletDir
	if kubelet == "" {
		kubelet = `C:\var\lib\kubelet`
	}
	of := p.subjects(kubelet, modes...)
	s := of[d.container]
	delete(of, d.container)
	s.Name = "node"
	if s.Namespace != d.namespace || !slices.Equal(s.ServiceAccounts, []string{d.serviceAccount}) {
		t.Errorf("%s is %+v", o.Name, s)
	}
	who := rules[0].Callers[0]
	if who.Namespace != d.namespace || who.ServiceAccount != d.serviceAccount || who.Container != d.container {
		t.Errorf("%s is %+v on nodes", o.Name, who)
	}
	policy := admission.PipePolicy{Action: admission.ActionDeny, Requirement: admission.AllowedNamespace}
	if slices.Contains(modes, "Pipes") {
		for _, rule := range rules {
			s.Methods, s.PathPrefixes = append(s.Methods, rule.Operations...), append(s.PathPrefixes, rule.Paths...)
		}
		s.Shares = o.Shares
		for _, pipe := range d.pipes {
			policy.Pipes = append(policy.Pipes, "csi-proxy-"+pipe)
		}
	}
	sidecars := admission.PipePolicy{Action: admission.ActionDeny, Requirement: admission.AllowedNamespace}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		sidecar := of[name]
		if change != nil {
			change(&sidecar)
		}
		if sidecar.HostProcess != nil || sidecar.HostPaths != nil {
			sidecars.Subjects = append(sidecars.Subjects, sidecar)
		}
	}
	if change != nil {
		change(&s)
	}
	policy.Subjects = []access.Subject{s}
	made := map[string]admission.PipePolicy{o.Name: policy}
	if sidecars.Subjects != nil {
		made[o.Name+"-sidecars"] = sidecars
	}
	return made
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

// differ compares parameters.
func differ(want, got admission.Parameters) string {
	return cmp.Diff(want, got, cmpopts.EquateEmpty(), inAnyOrder, cmpopts.IgnoreFields(admission.PipePolicy{}, "Warnings"))
}

func TestAProfileAllowsItsDriverAndNobodyElse(t *testing.T) {
	for name := range drivers {
		got := parameters(t, render(t, set("drivers."+name+".enabled=true")...), "pipeguard-parameters")
		want := admission.DefaultParameters()
		want.PipePolicies = profilePolicies(t, profiles.Options{Name: name}, nil)
		if diff := differ(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for policy, p := range got.PipePolicies {
			if len(p.Warnings) > 0 {
				t.Errorf("%s: %q", policy, p.Warnings)
			}
		}
	}
}

func TestAProfileOfOneMode(t *testing.T) {
	for name, p := range publishedIn(t, "drivers.yaml") {
		for mode := range p.Modes {
			got := parameters(t, render(t, set("drivers."+name+".enabled=true", "drivers."+name+".modes={"+mode+"}")...), "pipeguard-parameters")
			want := admission.DefaultParameters()
			want.PipePolicies = profilePolicies(t, profiles.Options{Name: name}, nil, mode)
			if diff := differ(want, got); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", name, mode, diff)
			}
		}
	}
}

// What is set in place of what is published, of a driver in both modes.
func TestAProfileOfAnotherInstallation(t *testing.T) {
	of := func(key, list string) []string {
		return []string{"--set-json", "drivers.azuredisk." + key + "=" + list}
	}
	got := parameters(t, render(t, slices.Concat(set("drivers.azuredisk.enabled=true", "drivers.azuredisk.namespace=storage"),
		of("serviceAccounts", `["a","b"]`), of("containers", `["driver"]`), of("images", `["registry.example/*"]`), of("pipes", `["csi-proxy-disk-v1"]`), of("methods", `[]`))...), "pipeguard-parameters")
	want := admission.DefaultParameters()
	want.PipePolicies = profilePolicies(t, profiles.Options{Name: "azuredisk"}, func(s *access.Subject) {
		s.Namespace, s.ServiceAccounts, s.Images = "storage", []string{"a", "b"}, []string{"registry.example/*"}
		if s.Name == "node" {
			s.Containers, s.Methods = []string{"driver"}, nil
		}
	})
	policy := want.PipePolicies["azuredisk"]
	policy.Pipes = []string{"csi-proxy-disk-v1"}
	want.PipePolicies["azuredisk"] = policy
	if diff := differ(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestProfilesThatCannotBeAreRefusedWithTheRemedy(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"EBS by its old name":      {set("drivers.awsEbs.enabled=true"), "drivers.awsEbs is drivers.aws-ebs now"},
		"PD by its old name":       {set("drivers.gcePd.enabled=false"), "drivers.gcePd is drivers.gce-pd now"},
		"a mode that there is not": {set("drivers.trident.enabled=true", "drivers.trident.modes={HostProcess}"), "no mode HostProcess, but Pipes"},
		"HostProcess of everybody": {append(set("drivers.smb.enabled=true", "drivers.smb.modes={HostProcess}"), "--set-json", "drivers.smb.serviceAccounts=[]"), "needs serviceAccounts"},
		"a policy's name":          {append(set("drivers.aws-ebs.enabled=true"), "--set-json", `policies.aws-ebs={"pipes":["x"]}`), "policies.aws-ebs has the name"},
		"a name of sidecars":       {append(set("drivers.smb.enabled=true"), "--set-json", `policies.smb-sidecars={"pipes":["x"]}`), "policies.smb-sidecars has the name"},
		"a name of the system":     {append(set("system.calico.enabled=true"), "--set-json", `policies.calico={"pipes":["x"]}`), "policies.calico has the name"},
		"the node component's":     {append(set("node.enabled=true"), "--set-json", `policies.pipeguard-node={"pipes":["x"]}`), "policies.pipeguard-node has the name"},
	} {
		if _, err := template(t, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPodsOfTheSystemAreSubjects(t *testing.T) {
	for name, p := range publishedIn(t, "system.yaml") {
		images := []string{"registry.example/" + name + "/*"}
		for _, mirror := range []bool{false, true} {
			args, account := set("system."+name+".enabled=true"), p.ServiceAccounts
			if mirror {
				account = []string{"other"}
				args = append(args, set("system."+name+".namespace=elsewhere", "system."+name+".serviceAccounts={other}", "system."+name+".images={"+images[0]+"}")...)
				p.Namespace = "elsewhere"
			}
			want := admission.PipePolicy{Action: admission.ActionDeny, Requirement: admission.AllowedNamespace}
			for _, container := range slices.Sorted(maps.Keys(p.Containers)) {
				c := p.Containers[container]
				s := access.Subject{
					Name: container, Namespace: p.Namespace, ServiceAccounts: account, Containers: []string{container}, Images: patterns(c.Images), HostPaths: c.HostPaths,
				}
				if name != "secrets-store" {
					s.HostProcess = &access.HostProcess{RunAsUserNames: []string{`NT AUTHORITY\SYSTEM`}}
				}
				if mirror {
					s.Images = images
				}
				want.Subjects = append(want.Subjects, s)
			}
			got := parameters(t, render(t, args...), "pipeguard-parameters")
			all := admission.DefaultParameters()
			all.PipePolicies = map[string]admission.PipePolicy{name: want}
			if diff := differ(all, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if w := got.PipePolicies[name].Warnings; len(w) > 0 {
				t.Errorf("%s: %q", name, w)
			}
		}
	}
}

// systemPolicy is one of a single HostProcess container.
func systemPolicy(namespace, account, container string, images []string) admission.PipePolicy {
	return admission.PipePolicy{Action: admission.ActionDeny, Requirement: admission.AllowedNamespace, Subjects: []access.Subject{{
		Name: container, Namespace: namespace, ServiceAccounts: []string{account}, Containers: []string{container}, Images: images,
		HostProcess: &access.HostProcess{RunAsUserNames: []string{`NT AUTHORITY\SYSTEM`}},
	}}}
}

func TestTheNodeComponentIsASubject(t *testing.T) {
	want := admission.DefaultParameters()
	want.PipePolicies = map[string]admission.PipePolicy{"pipeguard-node": systemPolicy("guard", "pipeguard-node", "proxy", patterns([]string{"registry.example/node"}))}
	got := parameters(t, render(t, set("node.enabled=true", "node.namespace=guard", "node.image.repository=registry.example/node")...), "pipeguard-parameters")
	if diff := differ(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryValueOfParametersArrives(t *testing.T) {
	want := admission.Parameters{
		GuardedPipes:      []string{"csi-proxy*", "docker_engine"},
		Requirement:       admission.AllowedNamespace,
		Action:            admission.ActionWarn,
		AllowedNamespaces: map[string]admission.Subjects{"kube-system": {ServiceAccounts: []string{"csi-smb-node-sa"}}, "legacy": {}},
		HostProcess:       admission.ActionWarn,
		HostProcessAllowed: map[string]admission.Subjects{
			"kube-system": {ServiceAccounts: []string{"kube-proxy"}}, "guard-nodes": {ServiceAccounts: []string{"other"}},
		},
		EqualPower:       admission.ActionDeny,
		EqualPowerPipes:  []string{"*"},
		EqualPowerPaths:  []string{`C:\`, `C:\Windows`, `C:\k\secrets`, `D:\data`},
		HostPaths:        admission.ActionDeny,
		GuardedHostPaths: []string{`D:\k`},
		PipePolicies:     map[string]admission.PipePolicy{},
	}
	for name := range drivers {
		o := profiles.Options{Name: name, KubeletDir: `D:\k`}
		var modes []string
		var change func(*access.Subject)
		switch name {
		case "azurefile":
			o.Shares = []string{`\\*.file.example\data`, `\\files.example\*`}
		case "azuredisk":
			change = func(s *access.Subject) { s.Images = []string{"mcr.microsoft.com/*"} }
		case "smb":
			modes = []string{"Pipes"} // no subject permits HostProcess containers to everybody
			change = func(s *access.Subject) { s.ServiceAccounts, s.HostPaths = nil, nil }
		case "trident":
			change = func(s *access.Subject) { s.Namespace = "netapp" }
		}
		maps.Copy(want.PipePolicies, profilePolicies(t, o, change, modes...))
	}
	for name, p := range want.PipePolicies {
		if len(p.Pipes) > 0 { // those without pipes have no use for an action
			p.Action = want.Action
			want.PipePolicies[name] = p
		}
	}
	kubeProxy := publishedIn(t, "system.yaml")["kube-proxy"]
	want.PipePolicies["kube-proxy"] = systemPolicy("kube-system", "kube-proxy", "kube-proxy", patterns(kubeProxy.Containers["kube-proxy"].Images))
	want.PipePolicies["guard-node"] = systemPolicy("guard-nodes", "guard-node", "proxy", patterns([]string{"registry.example.com:5000/pipeguard/node"}))
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

// Profiles permit directories of the kubelet where the values say that it is, so that one must be guarded.
func TestTheKubeletsDirectoryIsGuarded(t *testing.T) {
	const elsewhere = `D:\kubelet`
	for name, c := range map[string]struct {
		values []string
		want   bool
	}{
		"elsewhere":           {[]string{"--set-json", `node.kubeletPath="D:\\kubelet"`}, true},
		"where it is usually": {nil, false},
		"nothing":             {[]string{"--set-json", `node.kubeletPath="D:\\kubelet"`, "--set-json", "parameters.guardedHostPaths=[]"}, false},
	} {
		paths := parameters(t, render(t, c.values...), "pipeguard-parameters").GuardedHostPaths
		if got := slices.Contains(paths, elsewhere); got != c.want {
			t.Errorf("%s: guarded: %q", name, paths)
		}
		slices.Sort(paths)
		if len(slices.Compact(slices.Clone(paths))) != len(paths) {
			t.Errorf("%s: twice: %q", name, paths)
		}
	}
}
