package profiles

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func known(t *testing.T) []access.API {
	t.Helper()
	apis, err := apiserver.Load("disk", "filesystem", "volume", "smb", "iscsi", "system")
	if err != nil {
		t.Fatal(err)
	}
	var known []access.API
	for _, api := range apis {
		entry := access.API{Group: api.GroupVersion().Group, Version: api.GroupVersion().Version}
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

// What operations name in package access is what the descriptors of the API say: a path that it did not count would not be confined.
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
		if got := access.TakesPaths(name); got != count {
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
	driver := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "kube-system", ServiceAccount: "csi-azuredisk-node-sa"}, Container: caller.Container{Name: "azuredisk"}}
	other := func(change func(*caller.Caller)) caller.Caller {
		c := driver
		change(&c)
		return c
	}
	p := policy(t, Options{Name: "azuredisk"})
	for _, tt := range []struct {
		name, group, operation string
		paths                  []string
		caller                 caller.Caller
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
		{"a sidecar", "disk", "PartitionDisk", nil, other(func(c *caller.Caller) { c.Container.Name = "liveness-probe" }), false},
		{"another pod of the namespace", "disk", "PartitionDisk", nil, other(func(c *caller.Caller) { c.Pod.ServiceAccount = "default" }), false},
		{"a service account that is not known", "disk", "PartitionDisk", nil, other(func(c *caller.Caller) { c.Pod.ServiceAccount = "" }), false},
		{"the same names in another namespace", "disk", "PartitionDisk", nil, other(func(c *caller.Caller) { c.Pod.Namespace = "team-a" }), false},
		{"a pod that is not proven", "disk", "PartitionDisk", nil, other(func(c *caller.Caller) { c.Assurance = "process" }), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := p.Decide(access.Call{Group: tt.group, Version: "v1", Operation: tt.operation, Caller: tt.caller, Paths: tt.paths})
			if d.Allowed != tt.want || len(d.Permits) > 0 {
				t.Errorf("allowed %v, want %v, permits %q: %s", d.Allowed, tt.want, d.Permits, d.Reason)
			}
		})
	}
}

// A call that removes, mounts over or links must name what can belong to one volume: the profiles' directories hold all of them.
func TestNoProfileLetsADriverRemoveTheKubeletsDirectories(t *testing.T) {
	const kubelet = `C:\var\lib\kubelet`
	asked := 0
	for _, d := range drivers() {
		p := policy(t, Options{Name: d.name})
		who := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: d.namespace, ServiceAccount: d.account}, Container: caller.Container{Name: d.container}}
		for _, s := range d.uses {
			for _, op := range s.operations {
				which := access.ReplacesPath(op)
				if which == 0 {
					continue
				}
				for _, shared := range []string{kubelet + `\pods`, kubelet + `\plugins`, `c:\VAR\\lib\kubelet\PODS\`, kubelet + `\\plugins\\`, kubelet} {
					paths := slices.Repeat([]string{kubelet + `\plugins\x\y`}, access.TakesPaths(op))
					r := access.Call{Group: s.group, Version: "v1", Operation: op, Caller: who, Paths: paths}
					if d := p.Decide(r); !d.Allowed {
						t.Errorf("%s of %q: %s", op, paths, d.Reason)
					}
					paths[which-1] = shared
					if d := p.Decide(r); d.Allowed {
						t.Errorf("%s of %q is allowed by %s", op, paths, d.Rule)
					}
					asked++
				}
			}
		}
	}
	if asked < 100 {
		t.Errorf("only %d calls were asked about", asked)
	}
}

// What the drivers' mounters send from staging a volume to expanding and removing it, as their sources do.
func TestWhatDriversSendForOneVolumeIsAllowedAndDeepEnough(t *testing.T) {
	const (
		kubelet = `C:\var\lib\kubelet`
		pod     = `c:\var\lib\kubelet\pods\7f0c1c0e-5f0d-4a41-9c3e-0d6a3b9f1a11\volumes\kubernetes.io~csi\pvc-1\mount`
		byHash  = `\var\lib\kubelet\plugins\kubernetes.io\csi\disk.csi.azure.com\6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b\globalmount`
		byName  = kubelet + `\plugins\kubernetes.io\csi\pv\pvc-1\globalmount`
	)
	roots, err := safepath.NewRoots(kubelet)
	if err != nil {
		t.Fatal(err)
	}
	type call struct {
		group, operation string
		paths            []string
	}
	block := func(stage string) []call {
		return []call{
			{"filesystem", "PathExists", []string{stage}}, {"filesystem", "Mkdir", []string{stage}}, {"filesystem", "IsSymlink", []string{stage}},
			{"volume", "GetVolumeIDFromTargetPath", []string{stage}}, {"volume", "MountVolume", []string{stage}},
			{"filesystem", "PathExists", []string{pod}}, {"filesystem", "Rmdir", []string{pod}}, {"filesystem", "CreateSymlink", []string{stage, pod}},
			{"filesystem", "IsSymlink", []string{pod}}, {"volume", "GetClosestVolumeIDFromTargetPath", []string{pod}},
			{"filesystem", "Rmdir", []string{pod}}, {"volume", "UnmountVolume", []string{stage}}, {"filesystem", "Rmdir", []string{stage + `\`}},
		}
	}
	file := func(stage string) []call {
		return []call{
			{"filesystem", "PathExists", []string{stage}}, {"filesystem", "Mkdir", []string{filepathDir(stage)}}, {"filesystem", "Rmdir", []string{stage}},
			{"smb", "NewSmbGlobalMapping", []string{stage}}, {"filesystem", "IsSymlink", []string{stage}},
			{"filesystem", "Mkdir", []string{filepathDir(pod)}}, {"filesystem", "Rmdir", []string{pod}}, {"filesystem", "CreateSymlink", []string{stage, pod}},
			{"filesystem", "Rmdir", []string{pod}}, {"filesystem", "RmdirContents", []string{stage}}, {"filesystem", "Rmdir", []string{stage}},
		}
	}
	for name, calls := range map[string][]call{
		"azuredisk": slices.Concat(block("c:"+byHash), block(byName)), "gce-pd": block(byName), "aws-ebs": block(`C:` + byHash), "vsphere": block(byName),
		"smb": slices.DeleteFunc(file(byName), func(c call) bool { return c.operation == "RmdirContents" }), "azurefile": file(`C:\` + byHash),
	} {
		d := drivers()[slices.IndexFunc(drivers(), func(d driver) bool { return d.name == name })]
		who := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: d.namespace, ServiceAccount: d.account}, Container: caller.Container{Name: d.container}}
		p := policy(t, Options{Name: name})
		for _, c := range calls {
			if decision := p.Decide(access.Call{Group: c.group, Version: "v1", Operation: c.operation, Caller: who, Paths: c.paths}); !decision.Allowed {
				t.Errorf("%s: %+v: %s", name, c, decision.Reason)
			}
			check := roots.Check
			for i, path := range c.paths {
				if i+1 == access.ReplacesPath(c.operation) {
					check = roots.CheckVolume
				}
				if _, err := check(path); err != nil {
					t.Errorf("%s: %+v: %v", name, c, err)
				}
			}
		}
	}
}

// filepathDir is filepath.Dir of a Windows path on every system.
func filepathDir(path string) string { return path[:strings.LastIndexByte(path, '\\')] }

func TestOptionsOfAProfile(t *testing.T) {
	who := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "storage"}, Container: caller.Container{Name: "main", Image: "r.io/smb/driver:v1"}}
	o := Options{Name: "smb", Namespace: "storage", ServiceAccount: AnyServiceAccount, Container: "main", Image: "r.io/smb/*", KubeletDir: `D:\kubelet\`}
	r := access.Call{Group: "smb", Version: "v1", Operation: "NewSmbGlobalMapping", Caller: who, Paths: []string{`D:\kubelet\plugins\a`}}
	if d := policy(t, o).Decide(r); d.Rule != "smb@storage/*:paths" {
		t.Errorf("%+v", d)
	}
	r.Caller.Container.Image = "r.io/evil/driver:v1"
	if d := policy(t, o).Decide(r); d.Allowed {
		t.Errorf("another image: %+v", d)
	}
	r.Caller, r.Paths = who, []string{`C:\var\lib\kubelet\plugins\a`}
	if d := policy(t, o).Decide(r); d.Allowed {
		t.Errorf("the usual directory where another is said: %+v", d)
	}
}

// What takes a share or a service, in package acl, is what the descriptors of the API say, as it is for paths.
func TestSharesAndServicesAreThoseOfTheAPI(t *testing.T) {
	apis, err := apiserver.Load("disk", "filesystem", "volume", "smb", "iscsi", "system")
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		for _, m := range api.Methods() {
			request := m.NewRequest()
			for i := range request.ProtoReflect().Descriptor().Fields().Len() {
				if f := request.ProtoReflect().Descriptor().Fields().Get(i); f.Kind() == protoreflect.StringKind {
					request.ProtoReflect().Set(f, protoreflect.ValueOfString(`\\server\share`))
				}
			}
			kinds := map[string]bool{}
			for _, target := range apiserver.Targets(&apiserver.Call{Operation: m.Operation, Request: request}) {
				kinds[target.Kind] = true
			}
			if name := m.Operation.Name; access.TakesShares(name) != kinds["share"] || access.TakesServices(name) != kinds["service"] {
				t.Errorf("%s %s names %v", api.GroupVersion(), name, kinds)
			}
		}
	}
}

func TestAProfileIsConfinedToShares(t *testing.T) {
	p := policy(t, Options{Name: "smb", Shares: []string{`\\files.example\*`}})
	r := access.Call{Group: "smb", Version: "v1", Operation: "NewSmbGlobalMapping", Paths: []string{`C:\var\lib\kubelet\plugins\a`},
		Caller: caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "kube-system", ServiceAccount: "csi-smb-node-sa"}, Container: caller.Container{Name: "smb"}}}
	for share, want := range map[string]bool{`\\files.example\data`: true, `\\evil.example\data`: false} {
		r.Shares = []string{share}
		if d := p.Decide(r); d.Allowed != want {
			t.Errorf("%s: %+v", share, d)
		}
		r.Operation = "RemoveSmbGlobalMapping"
		if d := p.Decide(access.Call{Group: "smb", Version: "v1", Operation: r.Operation, Caller: r.Caller, Shares: r.Shares}); d.Allowed != want {
			t.Errorf("remove %s: %+v", share, d)
		}
		r.Operation = "NewSmbGlobalMapping"
	}
	r.Operation, r.Group, r.Paths = "Mkdir", "filesystem", []string{`C:\var\lib\kubelet\plugins\a`}
	if d := p.Decide(r); !d.Allowed {
		t.Errorf("a directory: %+v", d)
	}
	if _, err := Rules(Options{Name: "azuredisk", Shares: []string{`\\a\b`}}); err == nil {
		t.Error("a driver that maps no shares is confined to some")
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
