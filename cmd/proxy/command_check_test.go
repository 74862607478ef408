package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const checkHead = "apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"

func checkConfig(t *testing.T, text string) (code int, out, errOut string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "proxy.yaml")
	if err := os.WriteFile(file, []byte(checkHead+text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), []string{"check-config", file}, &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestCheckConfigSaysWhoIsNamedAndWhoIsNot(t *testing.T) {
	code, out, errOut := checkConfig(t, `
acl:
  profiles: [azuredisk]
  rules:
    - {name: all, pipes: ["*"], operations: ["*"], callers: [{namespace: team-a}]}
    - {name: tools, pipes: ["system-*"], operations: [StopService], callers: [{user: S-1-5-18, exe: 'C:\tools\*'}, {user: S-1-5-18, exe: 'C:\a.exe'}]}
    - {name: wide, pipes: ["volume-*"], operations: ["*"], callers: [{serviceAccount: team-b/node}, {serviceAccount: team-c/node}]}
    - {name: reader, pipes: ["volume-*"], operations: [MountVolume], callers: [{namespace: team-d}]}
    - {name: formats, pipes: [volume-v1], operations: [FormatVolume], callers: [{serviceAccount: team-b/node, container: driver}]}
containers: {endpoint: '\\.\pipe\containerd-containerd', kubelet: {url: "https://127.0.0.1:10250", caFile: 'C:\ca.crt', tokenFile: 'C:\token'}}
tokens: {verify: {method: keys, keys: 'C:\t.pub', issuer: "https://cluster.example", audience: pipeguard}, pipes: {disk-v1: "off"}}
pipes: [{pipe: disk-v1, containerUser: true}]
bundle: {pool: windows, keys: 'C:\bundle.key.pub', file: 'C:\bundle.tar.gz', dir: 'C:\bundles', minimumRevision: 7}
`)
	if code != 0 || errOut != "" {
		t.Fatalf("exit code %d: %s", code, errOut)
	}
	for _, want := range []string{
		"\nnamed disk.PartitionDisk namespace=kube-system serviceAccount=csi-azuredisk-node-sa container=azuredisk assurance=pod\n",
		"\nnamed volume.FormatVolume serviceAccount=team-b/node container=driver\n",
		"\nnamed system.StopService user=S-1-5-18 exe=C:\\a.exe\n",
		"\nnote rule all allows PartitionDisk to namespace=team-a, and the request policy refuses it",
		"\nnote rule all allows FormatVolume to namespace=team-a, and",
		"\nnote rule tools allows StopService to user=S-1-5-18 exe=C:\\tools\\*, and",
		"\nnote rule wide allows FormatVolume to serviceAccount=team-c/node, and",
		"\nnote a process is named by account and program only while it is known to be in no container: ",
		"\ntokens disk-v1 off\n", "\nopens csi-proxy-disk-v1 S-1-5-93-2-2\n",
		"\ncallers are known by their pods: containers from \\\\.\\pipe\\containerd-containerd, service accounts from https://127.0.0.1:10250\n",
		"\nbundle for pool windows from C:\\bundle.tar.gz, signed by a key in C:\\bundle.key.pub, kept in C:\\bundles, revision 7 or later\n",
		"\nnote pipes that the bundle's PipePolicies guard are decided by the bundle alone",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, wrong := range []string{"named volume.MountVolume", "note rule all allows StopService", "to serviceAccount=team-b/node", "rule reader allows", "exe=C:\\a.exe, and", "pods are not known", "containers are not known"} {
		if strings.Contains(out, wrong) {
			t.Errorf("%q is in\n%s", wrong, out)
		}
	}
}

func TestCheckConfigTriesTheModules(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := "requestPolicy: {modules: '" + dir + "'}\n"
	write("house.rego", "package pipeguard.node\n\nfindings contains {\"code\": \"HOUSE1\", \"effect\": \"deny\"} if input.operation == \"Rescan\"\n")
	write("house_test.rego", "package house_test\n\nimport data.pipeguard.node\n\ntest_x if \"HOUSE1\" in {f.code | some f in node.findings} with input as {\"operation\": \"Rescan\"}\n")
	if code, out, errOut := checkConfig(t, config); code != 0 || !strings.Contains(out, "policy is the built-in request policy and the modules in "+dir) {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	for name, tt := range map[string]struct{ text, says string }{
		"a test that fails":           {"package pipeguard.node\n", "test"},
		"a rule that names everybody": {"package pipeguard.node\n\nis_named if true\n", "is_named belongs to the base policy"},
		"a rule that does not parse":  {"package pipeguard.node\n\nx if\n", "house.rego:4"},
	} {
		write("house.rego", tt.text)
		if code, out, errOut := checkConfig(t, config); code != 1 || out != "" || !strings.Contains(errOut, tt.says) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errOut)
		}
	}
	if code, _, errOut := checkConfig(t, "requestPolicy: {modules: '"+filepath.Join(dir, "missing")+"'}\n"); code != 1 || !strings.Contains(errOut, "missing") {
		t.Errorf("a directory that is not there: exit code %d: %s", code, errOut)
	}
	elsewhere := `C:\no\such\directory`
	if filepath.IsAbs(elsewhere) {
		t.Skip("it can be on this system")
	}
	if code, out, _ := checkConfig(t, "requestPolicy: {modules: '"+elsewhere+"'}\n"); code != 0 || !strings.Contains(out, "note the modules in "+elsewhere+" were not tried") {
		t.Errorf("a directory of another system: exit code %d: %s", code, out)
	}
}

func TestCheckConfigRefusesAPipeThatNobodyServes(t *testing.T) {
	if code, out, errOut := checkConfig(t, "pipes: [{pipe: disk-v7, containerUser: true}]\n"); code != 1 || out != "" || !strings.Contains(errOut, "pipes[0].pipe") {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// Files that the configuration names, and that a start reads, are read as it does.
func TestCheckConfigWarnsOfFilesWithWhichNothingStarts(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	spoilt := filepath.Join(t.TempDir(), "spoilt")
	if err := os.WriteFile(spoilt, []byte("?"), 0o600); err != nil {
		t.Fatal(err)
	}
	for field, text := range map[string]string{
		"bundle.keys":               "bundle: {pool: windows, keys: '%s', file: '%s'}",
		"bundle.caFile":             "bundle: {pool: windows, keys: '%s', url: 'https://127.0.0.1:1/', caFile: '%s'}",
		"tokens.verify":             "tokens: {pipes: {disk-v1: required}, verify: {method: keys, audience: a, issuer: i, keys: '%s'}}",
		"containers.kubelet.caFile": "containers: {endpoint: '%s', kubelet: {url: 'https://127.0.0.1:1', caFile: '%s', tokenFile: '%s'}}",
		"audit.signing.key":         "audit: {signing: {key: '%s'}}",
		"audit.signing.old":         "audit: {signing: {key: '%s', old: '%s'}}",
		"audit.copies.otlp.caFile":  "audit: {copies: {otlp: {endpoint: '127.0.0.1:1', caFile: '%s'}}}",
	} {
		for _, file := range []string{none, spoilt} {
			named := strings.Replace(strings.ReplaceAll(text, "%s", file), "endpoint: '"+file+"'", `endpoint: '\\.\pipe\containerd-containerd'`, 1)
			code, out, errOut := checkConfig(t, named)
			if code != 0 || errOut != "" || !strings.Contains(out, "\nwarning here the service would refuse to start: configuration: "+field+": ") {
				t.Errorf("%s: exit code %d, %s\n%s", named, code, errOut, out)
			}
		}
	}
	for field, text := range map[string]string{
		"audit.path": "audit: {path: '" + spoilt + "'}",
		"bundle.dir": "bundle: {pool: windows, keys: '" + none + "', file: '" + none + "', dir: '" + spoilt + "'}",
		"log.path":   "log: {path: '" + filepath.Dir(spoilt) + "'}",
	} {
		if code, out, errOut := checkConfig(t, text); code != 0 || errOut != "" || !strings.Contains(out, "\nwarning here the service would refuse to start: configuration: "+field+": ") {
			t.Errorf("%s: exit code %d, %s\n%s", text, code, errOut, out)
		}
	}
	const elsewhere = `C:\bundle.pub`
	if filepath.IsAbs(elsewhere) { // on Windows, a path of another system is a fault
		return
	}
	if code, out, errOut := checkConfig(t, "bundle: {pool: windows, keys: '"+elsewhere+"', file: '"+elsewhere+"'}"); code != 0 || strings.Contains(out, "refuse to start") || !strings.Contains(out, "\nnote not looked at, since such a file cannot be on this system: bundle.keys\n") {
		t.Errorf("exit code %d, %s\n%s", code, errOut, out)
	}
}
