package bundlecmd

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const diskPolicy = `apiVersion: pipeguard.dev/v1alpha1
kind: PipePolicy
metadata: {name: azuredisk}
spec:
  pipes: ["csi-proxy-disk-*"]
  subjects: [{name: node, namespace: kube-system, serviceAccounts: [csi-azuredisk-node-sa]}]
`

// desk is a directory to work in, with a key and policies.
type desk struct {
	t   *testing.T
	dir string
}

func newDesk(t *testing.T) desk {
	d := desk{t, t.TempDir()}
	d.write("policies.yaml", diskPolicy)
	d.run(0, "keys", "generate", d.file("key"), "--for", "bundle")
	return d
}

func (d desk) file(name string) string { return filepath.Join(d.dir, name) }

func (d desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(d.file(name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d desk) read(name string) []byte {
	d.t.Helper()
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		d.t.Fatal(err)
	}
	return text
}

// run expects an exit code and returns what was printed.
func (d desk) run(want int, args ...string) string {
	d.t.Helper()
	got := execute(d.t, "", args...)
	out := got.Out + got.ErrOut
	if got.Code != want {
		d.t.Fatalf("%q: exit code %d, want %d\n%s", args, got.Code, want, out)
	}
	return out
}

func (d desk) build(want int, more ...string) string {
	d.t.Helper()
	return d.run(want, with([]string{
		"bundle", "build", "--policies", d.file("policies.yaml"), "--key", d.file("key"), "--pool", "windows", "--out", d.file("bundle"), "--now", "2026-01-02T03:04:05Z",
	}, 4, more)...)
}

func (d desk) verify(want int, more ...string) string {
	d.t.Helper()
	return d.run(want, with([]string{"bundle", "verify", d.file("bundle"), "--keys", d.file("key.pub"), "--pool", "windows", "--now", "2026-01-03T00:00:00Z"}, 3, more)...)
}

// with adds flags to a command line, whose own, from a place on, they replace.
func with(args []string, from int, more []string) []string {
	for i := from; i+1 < len(args); {
		if slices.Contains(more, args[i]) {
			args = slices.Delete(args, i, i+2)
		} else {
			i += 2
		}
	}
	return append(args, more...)
}

func TestPoliciesOfParametersGoIntoABundle(t *testing.T) {
	d := newDesk(t)
	d.write("parameters.yaml", "pipePolicies: {smb: {pipes: [csi-proxy-smb-v1], subjects: [{name: node, namespace: storage, node: {methods: [NewSmbGlobalMapping]}}]}}")
	d.build(0, "--params", d.file("parameters.yaml"))
	if shown := d.verify(0); !strings.Contains(shown, "\nPipePolicy azuredisk\n") || !strings.Contains(shown, "\nPipePolicy parameters/smb\n") {
		t.Errorf("shown:\n%s", shown)
	}
	alone := []string{"bundle", "build", "--key", d.file("key"), "--pool", "windows", "--out", d.file("bundle")}
	d.run(2, alone...)
	d.run(0, append(alone, "--params", d.file("parameters.yaml"), "--now", "2026-01-02T03:04:05Z")...)
	if shown := d.verify(0); strings.Contains(shown, "azuredisk") || !strings.Contains(shown, "\nPipePolicy parameters/smb\n") {
		t.Errorf("shown:\n%s", shown)
	}
	d.run(2, append(alone, "--params", d.file("parameters.yaml"), "--out", d.file("parameters.yaml"))...)
	d.write("parameters.yaml", "pipePolicies: {smb: {pipes: [csi-proxy-smb-v1], node: {methods: [Map]}}}")
	d.build(2, "--params", d.file("parameters.yaml"))
	d.write("parameters.yaml", "pipePolicies: {smb: {pipes: [csi-proxy-smb-v1], subjects: [{name: node, namespace: storage, node: }]}}")
	d.build(2, "--params", d.file("parameters.yaml"))
	d.write("parameters.yaml", "pipePolicies: {smb: {pipes: [csi-proxy-smb-v1], subjects: [{name: node, namespace: storage}]}}")
	if out := d.build(0, "--params", d.file("parameters.yaml")); !strings.Contains(out, "warning: PipePolicy parameters/smb: subject node names no service account") {
		t.Errorf("built:\n%s", out)
	}
	d.write("parameters.yaml", "guardedPipes: [csi-proxy*]")
	d.run(2, append(alone, "--params", d.file("parameters.yaml"))...)
}

func TestARotationHasATimeOfBothKeys(t *testing.T) {
	d := newDesk(t)
	d.build(0)
	d.run(0, "keys", "generate", d.file("next"), "--for", "bundle", "--old", d.file("key"))
	d.run(2, "keys", "generate", d.file("next"), "--for", "bundle", "--old", d.file("key"))
	d.run(2, "keys", "generate", d.file("third"), "--for", "bundle", "--old", d.file("next.both.pub"))
	d.run(2, "keys", "generate", d.file("third"), "--for", "bundle", "--old", d.file("policies.yaml"))
	d.verify(0, "--keys", d.file("next.both.pub"))
	d.verify(1, "--keys", d.file("next.pub"))
	d.build(0, "--key", d.file("next"))
	d.verify(0, "--keys", d.file("next.both.pub"))
	d.verify(0, "--keys", d.file("next.pub"))
	if out := d.verify(1); !strings.Contains(out, "refused: key: ") {
		t.Errorf("the old key alone:\n%s", out)
	}
}

func TestEqualInputBuildsEqualBytes(t *testing.T) {
	d := newDesk(t)
	d.build(0)
	one := d.read("bundle")
	d.build(0)
	if !bytes.Equal(one, d.read("bundle")) {
		t.Error("other bytes")
	}
	if out := d.verify(0); !strings.Contains(out, "revision   1767323045\n") || !strings.Contains(out, "PipePolicy azuredisk\n") {
		t.Errorf("verified:\n%s", out)
	}
}

func TestVerifySaysWhyNot(t *testing.T) {
	d := newDesk(t)
	d.build(0, "--revision", "5", "--expires", "48h")
	d.run(0, "keys", "generate", d.file("stranger"), "--for", "bundle")
	for reason, args := range map[string][]string{
		"audience": {"--pool", "linux"},
		"key":      {"--keys", d.file("stranger.pub")},
		"expired":  {"--now", "2026-01-04T03:04:05Z"},
		"not-yet":  {"--now", "2026-01-02T00:00:00Z"},
		"rollback": {"--minimum-revision", "6"},
	} {
		if out := d.verify(1, args...); !strings.Contains(out, "refused: "+reason+": ") {
			t.Errorf("%s:\n%s", reason, out)
		}
		var r bundleReport
		if err := json.Unmarshal([]byte(d.verify(1, append(args, "-o", "json")...)), &r); err != nil || r.OK || string(r.Reason) != reason || r.Verified != (reason != "key") {
			t.Errorf("%s: %+v, %v", reason, r, err)
		}
	}
	raw := d.read("bundle")
	d.write("bundle", string(raw[:len(raw)/2]))
	if out := d.verify(1); !strings.Contains(out, "refused: archive: ") {
		t.Errorf("half of it:\n%s", out)
	}
	d.write("bundle", strings.Repeat(" ", 2<<20))
	if out := d.verify(1); !strings.Contains(out, "refused: size: ") {
		t.Errorf("too large:\n%s", out)
	}
	d.verify(2, "--keys", d.file("policies.yaml"))
	d.verify(2, "--keys", d.file("key")) // the private half
	d.verify(2, "--keys", d.file("missing"))
	d.verify(2, "--now", "yesterday")
	d.run(2, "bundle", "verify", d.file("missing"), "--keys", d.file("key.pub"), "--pool", "windows")
	d.run(2, "bundle", "verify", d.file("bundle"))
}

func TestShowSaysWhatWasVerified(t *testing.T) {
	d := newDesk(t)
	d.build(0, "--revision", "5", "--minimum-revision", "3", "--policy-revision", "sha256:00ff")
	if out := d.run(0, "bundle", "show", d.file("bundle")); !strings.Contains(out, "NOT VERIFIED") || !strings.Contains(out, "minimum    3\npolicies   sha256:00ff\n") {
		t.Errorf("shown:\n%s", out)
	}
	if out := d.run(0, "bundle", "show", d.file("bundle"), "--keys", d.file("key.pub")); strings.Contains(out, "NOT VERIFIED") {
		t.Errorf("shown:\n%s", out)
	}
	d.run(0, "keys", "generate", d.file("stranger"), "--for", "bundle")
	d.run(1, "bundle", "show", d.file("bundle"), "--keys", d.file("stranger.pub"))
	d.run(1, "bundle", "show", d.file("policies.yaml"))
	d.run(2, "bundle", "show", d.file("missing"))
}

func TestBuildRefusesWhatIsUnfit(t *testing.T) {
	d := newDesk(t)
	d.build(1, "--pool", "*")
	d.build(1, "--revision", "0")
	for _, far := range []string{"18446744073709551615", "1767323045000"} {
		if out := d.build(1, "--revision", far); !strings.Contains(out, "revision "+far+": want at most 1798859045, a year ahead of the seconds since 1970") {
			t.Errorf("built:\n%s", out)
		}
	}
	d.build(1, "--expires", "8760h")
	d.build(1, "--revision", "5", "--minimum-revision", "6")
	d.build(2, "--key", d.file("key.pub"))
	d.build(2, "--out", filepath.Join(d.dir, "missing", "bundle"))
	d.build(2, "--rego", d.dir)
	d.write("policies.yaml", diskPolicy+"---\n"+diskPolicy)
	d.build(1)
	d.write("policies.yaml", strings.ReplaceAll(diskPolicy, "kube-system", "Kube_System"))
	if out := d.build(1); !strings.Contains(out, `PipePolicy "azuredisk"`) {
		t.Errorf("built:\n%s", out)
	}
	d.write("policies.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
	d.build(2)
	if _, err := os.Stat(d.file("bundle")); err == nil {
		t.Error("a bundle was written")
	}
}

const (
	houseRego = `package pipeguard.node

findings contains {"code": "HOUSE1", "effect": "deny"} if {
	input.operation == "Rescan"
	input.peer.token == false
}
`
	houseTest = `package house_test

import data.pipeguard.node

test_x if "HOUSE1" in {f.code | some f in node.findings} with input as {"operation": "Rescan", "peer": {"token": false}}
`
)

// What a node refuses of a bundle's Rego is refused here, for the same reason.
func TestABundleIsTriedAsOnANode(t *testing.T) {
	d := newDesk(t)
	rego := filepath.Join(d.dir, "rego")
	if err := os.Mkdir(rego, 0o700); err != nil {
		t.Fatal(err)
	}
	build := func(rules, tests string) {
		t.Helper()
		d.write("rego/house.rego", rules)
		d.write("rego/house_test.rego", tests)
		d.build(0, "--rego", rego)
	}
	build(houseRego, houseTest)
	if out := d.verify(0); !strings.Contains(out, "module     house.rego\n") {
		t.Errorf("verified:\n%s", out)
	}
	for name, c := range map[string]struct{ rules, tests, want string }{
		"a test that fails":               {houseRego, strings.Replace(houseTest, `"HOUSE1" in`, `"HOUSE2" in`, 1), "test"},
		"no tests":                        {houseRego, "package house_test\n", "there are none"},
		"a rule that does not compile":    {houseRego + "\nx := y\n", houseTest, "house.rego"},
		"a policy of its own":             {"package pipeguard.node\n\ndecision := {\"allowed\": true, \"findings\": set()}\n", houseTest, "decision belongs to the base policy"},
		"a rule that names everybody":     {houseRego + "\nis_named if true\n", houseTest, "is_named belongs to the base policy"},
		"a function that leaves the node": {houseRego + "\nx := http.send({})\n", houseTest, "http.send"},
	} {
		build(c.rules, c.tests)
		if out := d.verify(1); !strings.Contains(out, "refused: self-test: ") || !strings.Contains(out, c.want) {
			t.Errorf("%s:\n%s", name, out)
		}
	}
}

func TestABundleReplacesNothingThatItIsMadeFrom(t *testing.T) {
	d := newDesk(t)
	if err := os.Link(d.file("key"), d.file("other name")); err != nil {
		t.Fatal(err)
	}
	before := map[string][]byte{"key": d.read("key"), "policies.yaml": d.read("policies.yaml")}
	for _, name := range []string{"key", "other name", "policies.yaml"} {
		if said := d.build(2, "--out", d.file(name)); !strings.Contains(said, "one of the files that are read") {
			t.Errorf("%s: %s", name, said)
		}
	}
	for name, text := range before {
		if !bytes.Equal(text, d.read(name)) {
			t.Errorf("%s was overwritten", name)
		}
	}
	d.build(0)
	d.build(0) // a bundle replaces the one before
}
