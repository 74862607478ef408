package profiles

import (
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func known(t *testing.T) []acl.API {
	t.Helper()
	apis, err := apiserver.Load("disk", "filesystem", "volume", "smb", "iscsi", "system")
	if err != nil {
		t.Fatal(err)
	}
	var known []acl.API
	for _, api := range apis {
		entry := acl.API{Group: api.GroupVersion().Group, Version: api.GroupVersion().Version}
		for _, op := range api.Operations() {
			entry.Operations = append(entry.Operations, op.Name)
		}
		known = append(known, entry)
	}
	return known
}

func TestEveryProfileIsInOrder(t *testing.T) {
	if !slices.IsSorted(Names()) {
		t.Errorf("not sorted: %q", Names())
	}
	var all acl.Spec
	for _, name := range Names() {
		rules, err := Rules(Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		all.Rules = append(all.Rules, rules...)
	}
	policy, err := acl.New(all)
	if err != nil {
		t.Fatal(err)
	}
	if err := policy.Check(known(t)); err != nil {
		t.Error(err)
	}
	if w := policy.Warnings(); len(w) > 0 {
		t.Errorf("warnings:\n%v", w)
	}
}

// takesPaths in package acl is what the descriptors of the API say: a path that it did not count would not be confined.
func TestPathsAreThoseOfTheAPI(t *testing.T) {
	paths := map[string]int{"path": 1, "source_path": 1, "target_path": 1, "local_path": 1, "mount": 1}
	apis, err := apiserver.Load("disk", "filesystem", "volume", "smb", "iscsi", "system")
	if err != nil {
		t.Fatal(err)
	}
	newest := map[string]apiserver.Method{}
	for _, api := range apis { // versions come in rising order
		for _, m := range api.Methods() {
			newest[m.Operation.Name] = m
		}
	}
	for name, m := range newest {
		count := 0
		fields := m.NewRequest().ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			count += paths[string(fields.Get(i).Name())]
		}
		if got := acl.TakesPaths(name); got != count {
			t.Errorf("%s: %d paths, its request has %d", name, got, count)
		}
	}
}

func policy(t *testing.T, o Options) *acl.Policy {
	t.Helper()
	rules, err := Rules(o)
	if err != nil {
		t.Fatal(err)
	}
	p, err := acl.New(acl.Spec{Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAProfileAllowsItsDriverAndNobodyElse(t *testing.T) {
	const in, out = `C:\var\lib\kubelet\pods\x`, `C:\Windows\x`
	driver := acl.Caller{Assurance: "pod", Namespace: "kube-system", ServiceAccount: "csi-azuredisk-node-sa", Container: "azuredisk"}
	other := func(change func(*acl.Caller)) acl.Caller {
		c := driver
		change(&c)
		return c
	}
	p := policy(t, Options{Name: "azuredisk"})
	for _, tt := range []struct {
		name, group, operation string
		paths                  []string
		caller                 acl.Caller
		want                   bool
	}{
		{"a directory of a pod", "filesystem", "Mkdir", []string{in}, driver, true},
		{"a mount", "volume", "MountVolume", []string{in}, driver, true},
		{"a link", "filesystem", "CreateSymlink", []string{in, `C:\var\lib\kubelet\plugins\y`}, driver, true},
		{"a disk", "disk", "PartitionDisk", nil, driver, true},
		{"a format", "volume", "FormatVolume", nil, driver, true},

		{"a directory of Windows", "filesystem", "Mkdir", []string{out}, driver, false},
		{"the kubelet's own directory", "filesystem", "RmdirContents", []string{`C:\var\lib\kubelet`}, driver, false},
		{"the kubelet's keys", "filesystem", "Rmdir", []string{`C:\var\lib\kubelet\pki`}, driver, false},
		{"a link out of it", "filesystem", "CreateSymlink", []string{out, in}, driver, false},
		{"a group that it does not use", "smb", "NewSmbGlobalMapping", []string{in}, driver, false},
		{"services", "system", "StopService", nil, driver, false},
		{"iSCSI", "iscsi", "ConnectTarget", nil, driver, false},
		{"a sidecar", "disk", "PartitionDisk", nil, other(func(c *acl.Caller) { c.Container = "liveness-probe" }), false},
		{"another pod of the namespace", "disk", "PartitionDisk", nil, other(func(c *acl.Caller) { c.ServiceAccount = "default" }), false},
		{"a service account that is not known", "disk", "PartitionDisk", nil, other(func(c *acl.Caller) { c.ServiceAccount = "" }), false},
		{"the same names in another namespace", "disk", "PartitionDisk", nil, other(func(c *acl.Caller) { c.Namespace = "team-a" }), false},
		{"a pod that is not proven", "disk", "PartitionDisk", nil, other(func(c *acl.Caller) { c.Assurance = "process" }), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := p.Decide(acl.Request{Group: tt.group, Version: "v1", Operation: tt.operation, Caller: tt.caller, Paths: tt.paths})
			if d.Allowed != tt.want || len(d.Permits) > 0 {
				t.Errorf("allowed %v, want %v, permits %q: %s", d.Allowed, tt.want, d.Permits, d.Reason)
			}
		})
	}
}

func TestOptionsOfAProfile(t *testing.T) {
	caller := acl.Caller{Assurance: "pod", Namespace: "storage", Container: "main", Image: "r.io/smb/driver:v1"}
	o := Options{Name: "smb", Namespace: "storage", ServiceAccount: AnyServiceAccount, Container: "main", Image: "r.io/smb/*", KubeletDir: `D:\kubelet\`}
	r := acl.Request{Group: "smb", Version: "v1", Operation: "NewSmbGlobalMapping", Caller: caller, Paths: []string{`D:\kubelet\plugins\a`}}
	if d := policy(t, o).Decide(r); d.Rule != "smb@storage/*:paths" {
		t.Errorf("%+v", d)
	}
	r.Caller.Image = "r.io/evil/driver:v1"
	if d := policy(t, o).Decide(r); d.Allowed {
		t.Errorf("another image: %+v", d)
	}
	r.Caller, r.Paths = caller, []string{`C:\var\lib\kubelet\plugins\a`}
	if d := policy(t, o).Decide(r); d.Allowed {
		t.Errorf("the usual directory where another is said: %+v", d)
	}
}

func TestRulesRefuses(t *testing.T) {
	for _, name := range []string{"", "*", "SMB", "smb ", "linstor"} {
		if rules, err := Rules(Options{Name: name}); err == nil || rules != nil || !strings.Contains(err.Error(), "there are aws-ebs, azuredisk") {
			t.Errorf("%q: %v, %v", name, rules, err)
		}
	}
	for name, o := range map[string]Options{
		"a namespace with a star":     {Name: "smb", Namespace: "team-*"},
		"a service account of others": {Name: "smb", ServiceAccount: "other/sa"},
		"a container with a star":     {Name: "smb", Container: "*"},
		"a whole drive":               {Name: "smb", KubeletDir: `C:\..`},
		"any image":                   {Name: "smb", Image: "*"},
	} {
		rules, err := Rules(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := acl.New(acl.Spec{Rules: rules}); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
