package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// known are the APIs that the sample may name.
var known = []access.API{
	{Group: "filesystem", Version: "v1", Operations: []string{"PathExists", "Mkdir", "Rmdir", "CreateSymlink", "IsSymlink", "RmdirContents"}},
	{Group: "disk", Version: "v1", Operations: []string{"ListDiskLocations", "ListDiskIDs", "PartitionDisk", "Rescan", "GetDiskStats", "GetDiskState", "SetDiskState"}},
	{Group: "volume", Version: "v1", Operations: []string{"ListVolumesOnDisk", "MountVolume", "UnmountVolume", "IsVolumeFormatted", "FormatVolume",
		"ResizeVolume", "GetVolumeStats", "GetVolumeIDFromTargetPath", "GetClosestVolumeIDFromTargetPath", "WriteVolumeCache"}},
	{Group: "smb", Version: "v1", Operations: []string{"NewSmbGlobalMapping", "RemoveSmbGlobalMapping"}},
	{Group: "volume", Version: "v1beta1", Operations: []string{"MountVolume"}},
	{Group: "system", Version: "v1alpha1", Operations: []string{"GetBIOSSerialNumber", "GetService", "StartService", "StopService"}},
}

func TestSampleLoads(t *testing.T) {
	p, err := LoadProxy(filepath.Join("..", "..", "config", "samples", "proxy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if p.IsMissing() {
		t.Fatal("the sample is not where it should be")
	}
	policy, err := p.Policy(known)
	if err != nil {
		t.Fatal(err)
	}
	driver := caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\Program Files\azuredisk\azurediskplugin.exe`}}
	if d := policy.Decide(access.Call{Group: "filesystem", Version: "v1alpha1", Operation: "Mkdir", Caller: driver}); d.Rule != "azuredisk-node" {
		t.Errorf("the driver's Mkdir: %+v", d)
	}
	blob := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "storage", ServiceAccount: "csi-blob-node-sa"}, Container: caller.Container{Name: "blob"}}
	if d := policy.Decide(access.Call{Group: "filesystem", Version: "v1", Operation: "Mkdir", Caller: blob, Paths: []string{`C:\var\lib\kubelet\pods\x`}}); d.Rule != "blob-node" {
		t.Errorf("the pod's Mkdir: %+v", d)
	}
	for _, r := range []access.Call{
		{Group: "filesystem", Version: "v1", Operation: "Mkdir", Caller: blob, Paths: []string{`C:\var\lib\kubelet\pods-evil`}},
		{Group: "filesystem", Version: "v1", Operation: "RmdirContents", Caller: driver},
		{Group: "system", Version: "v1alpha1", Operation: "StopService", Caller: driver},
		{Group: "filesystem", Version: "v1", Operation: "Mkdir", Caller: caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\support\x.exe`}}},
	} {
		if d := policy.Decide(r); d.Allowed {
			t.Errorf("%+v is allowed: %+v", r, d)
		}
	}
	want := Limits{Connections: 256, ConnectionsPerCaller: 64, PrefaceTimeout: 20 * time.Second, StopTimeout: 20 * time.Second,
		Operations: 64, Waiting: 256, OperationTimeout: 10 * time.Minute}
	if diff := cmp.Diff(want, p.Limits); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Log{Path: `C:\ProgramData\Pipeguard\proxy.log`, MaxSizeMB: 100, MaxBackups: 5, MaxAgeDays: 30}, p.Log); diff != "" {
		t.Error(diff)
	}
	if p.Audit != (Audit{Path: `C:\ProgramData\Pipeguard\audit`, OnFailure: "fail_operation", SegmentMiB: 64, SegmentAge: 24 * time.Hour}) {
		t.Errorf("audit: %+v", p.Audit)
	}
}

func TestMissingFileDeniesAll(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "none.yaml")} {
		p, err := LoadProxy(file)
		if err != nil || !p.IsMissing() {
			t.Fatalf("%q: missing %v, error %v", file, p.IsMissing(), err)
		}
		policy, err := p.Policy(known)
		if err != nil {
			t.Fatal(err)
		}
		caller := caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\x.exe`}}
		if d := policy.Decide(access.Call{Group: "filesystem", Version: "v1", Operation: "PathExists", Caller: caller}); d.Allowed {
			t.Errorf("%q: %+v", file, d)
		}
	}
}

func TestUnreadableFileIsAnError(t *testing.T) {
	if _, err := LoadProxy(t.TempDir()); err == nil {
		t.Error("a directory was read as a configuration")
	}
	long := filepath.Join(t.TempDir(), "long.yaml")
	if err := os.WriteFile(long, []byte(head+"# "+strings.Repeat("x", configfile.MaxSize)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadProxy(long); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("a file without end: %v", err)
	}
}

const head = "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"

// rule lacks the callers, which end at the end of the file.
const rule = head + "acl:\n  rules:\n    - name: r\n      pipes: [volume-v1]\n      operations: [PathExists]\n      callers: ["

func TestParseRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string // each must stand in the error
	}{
		{"an empty file", "", []string{"f.yaml:1:1: apiVersion: want pipeguard.dev/v1alpha1", "f.yaml:1:1: kind: want ProxyConfig"}},
		{"nothing but comments", "# nothing\n", []string{"apiVersion"}},
		{"not YAML", "acl: [", []string{"f.yaml", "line"}},
		{"a list", "- a\n- b\n", []string{"f.yaml:1:1: apiVersion"}},
		{"another kind", strings.Replace(head, "ProxyConfig", "Pod", 1), []string{"f.yaml:2:7: kind: want ProxyConfig"}},
		{"another version", strings.Replace(head, "v1alpha1", "v1", 1), []string{"f.yaml:1:13: apiVersion"}},
		{"an unknown key", head + "acls: {}\n", []string{"line 3", "acls"}},
		{"an unknown key within a rule", head + "acl:\n  rules:\n    - name: r\n      pipe: x\n", []string{"line 6", "pipe"}},
		{"settings that an editor shows as a comment", head + "# only this:\u0085acl: {rules: []}\n", []string{"f.yaml", "line 3: U+0085"}},
		{"a value that is not what it looks like", head + "acl:\n  rules:\n    - {name: r, pipes: [!!binary Kg==]}\n", []string{"f.yaml", "line 5: the tag !!binary"}},
		{"a key in other case", head + "ACL: {}\n", []string{"line 3", "ACL"}},
		{"a key twice", head + "limits: {}\nlimits: {}\n", []string{"line 4", "already defined"}},
		{"a second document", head + "---\n" + head, []string{"more than one document"}},
		{"a word for a number", head + "limits: {connections: many}\n", []string{"line 3: a value of type !!str where int is expected"}},
		{"a negative limit", head + "limits: {connections: -1}\n", []string{"f.yaml:3:23: limits.connections"}},
		{"a limit without end", head + "limits:\n  connectionsPerCaller: 100000\n", []string{"f.yaml:4:25"}},
		{"a time below a second", head + "limits: {stopTimeout: 20ms}\n", []string{"f.yaml:3:23: limits.stopTimeout: 20ms"}},
		{"a time without unit", head + "limits: {stopTimeout: 20}\n", []string{"line 3", "time.Duration"}},
		{"an unknown backend", head + "backend: linux\n", []string{"f.yaml:3:10: backend"}},
		{"an upstream that nobody uses", head + "upstream: {pipe: \"up-*\"}\n", []string{"upstream: is used by backend"}},
		{"an upstream without a pipe", head + "backend: upstream\n", []string{"upstream.pipe"}},
		{"an upstream with this proxy's own names", head + "backend: upstream\nupstream: {pipe: \"CSI-proxy-*\"}\n", []string{"f.yaml:4:18: upstream.pipe"}},
		{"an upstream with a path", head + "backend: upstream\nupstream: {pipe: 'a\\*'}\n", []string{"upstream.pipe"}},
		{"a group twice", head + "backend: upstream\nupstream: {pipe: \"up-*\", groups: [disk, disk]}\n", []string{"upstream.groups[1]"}},
		{"a group that there is not", head + "backend: upstream\nupstream: {pipe: \"up-*\", groups: [Disk]}\n", []string{"upstream.groups[0]"}},
		{"no groups", head + "backend: upstream\nupstream: {pipe: \"up-*\", groups: []}\n", []string{"upstream.groups"}},
		{"a forward to itself", head + "forward: [{pipe: a, to: A}]\n", []string{"forward[0]", "twice"}},
		{"a forward in a circle", head + "forward: [{pipe: a, to: b}, {pipe: b, to: a}]\n", []string{"forward[1]", "twice"}},
		{"a forward in a circle by upstream", head + "backend: upstream\nupstream: {pipe: \"up-*\"}\nforward: [{pipe: UP-disk-v1, to: b}]\n", []string{"forward[0].pipe", "come back"}},
		{"a program by its name behind", head + "backend: upstream\nupstream: {pipe: \"up-*\", exe: csi-proxy.exe}\n", []string{"upstream.exe", "full path"}},
		{"a program by its name behind a forward", head + "forward: [{pipe: a, to: b, exe: agent.exe}]\n", []string{"forward[0].exe", "full path"}},
		{"a forward of a pipe of the node API", head + "forward: [{pipe: csi-proxy-disk-v1, to: b}]\n", []string{"forward[0]", "see backend"}},
		{"a forward to a pipe of the node API", head + "forward: [{pipe: b, to: csi-proxy-disk-v1}]\n", []string{"forward[0]", "see backend"}},
		{"a name that begins with a dash", head + "forward: [{pipe: -a, to: b}]\n", []string{"forward[0].pipe", "start with a letter"}},
		{"a name that ends with a dot", head + "forward: [{pipe: a, to: b.}]\n", []string{"forward[0].to", "not end in a dot"}},
		{"a full name", head + "forward: [{pipe: '\\\\.\\pipe\\a', to: b}]\n", []string{"forward[0].pipe"}},
		{"a log without end", head + "log: {maxSizeMB: 100000}\n", []string{"log.maxSizeMB"}},
		{"a negative age", head + "log: {maxAgeDays: -1}\n", []string{"log.maxAgeDays"}},
		{"an operation without end", head + "limits: {operationTimeout: 48h}\n", []string{"limits.operationTimeout"}},
		{"a permit that there is not", head + "acl:\n  rules:\n    - name: r\n      pipes: [volume-v1]\n      operations: [\"*\"]\n      callers: [{user: S-1-5-18}]\n      permits: [reformat]\n", []string{"acl.rules[0].permits[0]"}},
		{"a bundle without a pool", head + "bundle: {file: /b}\n", []string{"f.yaml:3:9: bundle.pool"}},
		{"a bundle without keys", head + "bundle: {pool: a, file: /b}\n", []string{"f.yaml:3:9: bundle.keys"}},
		{"a bundle from nowhere", head + "bundle: {pool: a, keys: /k}\n", []string{"f.yaml:3:9: bundle.file"}},
		{"a bundle from two places", head + "bundle: {pool: a, keys: /k, file: /b, url: \"https://h/b\"}\n", []string{"f.yaml:3:44: bundle.url"}},
		{"a bundle over plain HTTP", head + "bundle: {pool: a, keys: /k, url: \"http://h/b\"}\n", []string{"f.yaml:3:34: bundle.url"}},
		{"a bundle with a password", head + "bundle: {pool: a, keys: /k, url: \"https://u:p@h/b\"}\n", []string{"bundle.url"}},
		{"an authority for a file", head + "bundle: {pool: a, keys: /k, file: /b, caFile: /c}\n", []string{"bundle.caFile"}},
		{"a pool that is no name", head + "bundle: {pool: A b, keys: /k, file: /b}\n", []string{"f.yaml:3:16: bundle.pool"}},
		{"a bundle beside the working directory", head + "bundle: {pool: a, keys: k, file: 'b\\c', dir: 'C:d'}\n", []string{"bundle.keys", "bundle.file", "bundle.dir"}},
		{"a revision below none", head + "bundle: {pool: a, keys: /k, file: /b, minimumRevision: -1}\n", []string{"line 3"}},
		{"tokens that nothing verifies", head + "tokens: {pipes: {disk-v1: required}}\n", []string{"f.yaml:3:9: tokens.verify.method", "tokens.verify.audience"}},
		{"roles without an API server", head + "tokens: {roles: [disk-v1]}\n", []string{"f.yaml:3:17: tokens.roles"}},
		{"who is named", head + "requestPolicy: {named: {disk: {PartitionDisk: {pods: {x: {a: [{}]}}}}}}\n", []string{"f.yaml:3:24: requestPolicy.named: is gone: a rule in acl.rules that spells out the operation"}},
		{"who is named, beside modules", head + "requestPolicy:\n  modules: 'C:\\m'\n  named: [disk]\n", []string{"f.yaml:5:10: requestPolicy.named: is gone", "services"}},
		{"who is named, a text", head + "requestPolicy: {named: everybody}\n", []string{"f.yaml:3:24: requestPolicy.named: is gone"}},
		{"who is named, twice", head + "requestPolicy: {named: {disk: {}, disk: {}}}\n", []string{"disk"}},
		{"a mode in other case", head + "acl:\n  pipes:\n    - {pipe: volume-v1, mode: logonly}\n", []string{"f.yaml:5:31: acl.pipes[0].mode"}},
		{"a caller that would be everybody", head + "acl:\n  rules:\n    - name: r\n      pipes: [volume-v1]\n      operations: [\"*\"]\n      callers:\n        - {}\n", []string{"f.yaml:9:11: acl.rules[0].callers[0]", "every caller"}},
		{"a user left empty, which would be any user", rule + "{user: , exe: /bin/x}]\n", []string{"f.yaml:8:24: acl.rules[0].callers[0].user: has no value"}},
		{"a user that is an empty string", rule + "{user: \"\", exe: /bin/x}]\n", []string{"f.yaml:8:24: acl.rules[0].callers[0].user: has no value"}},
		{"a log behind a blank", head + "audit: {path: ' -'}\n", []string{"f.yaml:3:15: audit.path: begins or ends with a blank"}},
		{"a user with a blank behind", rule + "{user: 'S-1-5-18 ', exe: /bin/x}]\n", []string{"f.yaml:8:24: acl.rules[0].callers[0].user: begins or ends with a blank"}},
		{"a user that is blank", rule + "{user: ' \t', exe: /bin/x}]\n", []string{"f.yaml:8:24: acl.rules[0].callers[0].user: has no value"}},
		{"a user that is null", rule + "{user: ~, exe: /bin/x}]\n", []string{"acl.rules[0].callers[0].user: has no value"}},
		{"a bundle that is empty, and would be none", head + "bundle: {}\n", []string{"f.yaml:3:9: bundle: is empty", "bundle.pool: is not set"}},
		{"a bundle of nothing but a zero", head + "bundle: {minimumRevision: 0}\n", []string{"bundle.pool: is not set"}},
		{"a witness that is empty", head + "audit: {witness: {}}\n", []string{"audit.witness: is empty"}},
		{"a fraction, which would be cut off", head + "audit: {segmentMiB: 1.9}\nlimits: {operations: 2.5}\n", []string{"audit.segmentMiB: is not a whole number", "limits.operations: is not a whole number"}},
		{"a revision with a fraction", head + "bundle: {pool: p, minimumRevision: 4.5}\n", []string{"bundle.minimumRevision: is not a whole number"}},
		{"a rule that is null", head + "acl: {rules: [null]}\n", []string{"f.yaml:3:15: acl.rules[0]: has no value"}},
		{"an anchor", head + "acl: {rules: &a []}\n", []string{"line 3: anchors"}},
		{"an alias", rule + "{user: \"uid:0\", exe: &a /bin/x}, {exe: *a}]\n", []string{"line 8: anchors"}},
		{"a merge", head + "limits: {<<: {connections: 5}}\n", []string{"line 3: anchors, aliases and merges"}},
		{"several faults at once", head + "acl:\n  rules:\n    - name: r\n      pipes: [v1]\n      operations: [mkdir]\nlimits: {connections: -1}\n",
			[]string{"f.yaml:6:15: acl.rules[0].pipes[0]", "f.yaml:7:20: acl.rules[0].operations[0]", "acl.rules[0].callers", "f.yaml:8:23"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := ParseProxy("f.yaml", []byte(tt.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestPolicyRefusesNamesThatDoNotExist(t *testing.T) {
	p, err := ParseProxy("f.yaml", []byte(head+"acl:\n  rules:\n    - name: r\n      pipes: [filesystem-v1]\n      operations: [LinkPath]\n      callers: [{user: S-1-5-18}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Policy(known); err == nil || !strings.Contains(err.Error(), "f.yaml:7:20: acl.rules[0].operations[0]") {
		t.Errorf("got %v", err)
	}
}

// Whatever number or duration a file has: a 0 in it would read as if it were not there.
func TestNoNumberOfAFileIsZero(t *testing.T) {
	type key struct{ path, zero string }
	var keys []key
	var collect func(at reflect.Type, path string)
	collect = func(at reflect.Type, path string) {
		switch {
		case at == reflect.TypeFor[time.Duration]():
			keys = append(keys, key{path, "0s"})
		case at.Kind() == reflect.Int:
			keys = append(keys, key{path, "0"})
		case at.Kind() == reflect.Slice:
			collect(at.Elem(), path+".0")
		case at.Kind() == reflect.Struct:
			for i := range at.NumField() {
				if f := at.Field(i); f.IsExported() {
					collect(f.Type, strings.TrimPrefix(path+"."+f.Tag.Get("yaml"), "."))
				}
			}
		}
	}
	collect(reflect.TypeFor[Proxy](), "")
	if len(keys) < 30 {
		t.Errorf("only %d keys hold numbers: %v", len(keys), keys)
	}
	for _, k := range keys {
		var text strings.Builder // the path in YAML, and "- " for an element
		steps := strings.Split(k.path, ".")
		indent := ""
		for i, step := range steps {
			if step == "0" {
				continue
			}
			dash := ""
			if i > 0 && steps[i-1] == "0" {
				dash = "- "
			}
			fmt.Fprintf(&text, "%s%s%s:", indent, dash, step)
			if i < len(steps)-1 {
				text.WriteByte('\n')
			}
			indent += strings.Repeat(" ", 2+len(dash))
		}
		_, err := ParseProxy("f.yaml", []byte(head+text.String()+" "+k.zero+"\n"))
		if err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(k.path, ".0.", "[0].")+": is 0") {
			t.Errorf("%s: %v", k.path, err)
		}
	}
	if _, err := ParseProxy("f.yaml", []byte(head+"bundle: {pool: p, keys: 'C:\\k', file: 'C:\\b', minimumRevision: 0}\n")); err != nil {
		t.Error(err)
	}
}

func FuzzParseProxy(f *testing.F) {
	sample, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", "proxy.yaml"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sample)
	f.Add([]byte(head + "acl: &a\n  rules: [*a]\n"))
	f.Add([]byte(head + "? [a]\n: b\n"))
	f.Add([]byte(head + "acl: {rules: [{name: !!binary x}]}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParseProxy("f", text)
		if err == nil && (p.APIVersion != configfile.APIVersion || p.Kind != ProxyKind || p.IsMissing()) {
			t.Errorf("accepted %q", text)
		}
	})
}
