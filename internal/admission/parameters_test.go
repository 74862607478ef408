package admission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func TestParseParametersReportsEveryFault(t *testing.T) {
	_, err := ParseParameters([]byte(`
guardedPipes: ["csi-proxy*", "a*b", 7]
requirement: privilegedOrAllowedNamespace
allowedNamespaces:
  Kube_System: {serviceAccounts: [ok, "not ok", 1]}
  kube-system: {serviceaccounts: []}
  other: [x]
hostProcess: true
allowedNamespace: {}
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"guardedPipes[1]: ",
		"guardedPipes[2]: a number where a string is expected",
		"requirement: privilegedOrAllowedNamespace is none of PrivilegedOrAllowedNamespace, PrivilegedAndAllowedNamespace, AllowedNamespace",
		"allowedNamespaces.Kube_System: not the name of a namespace",
		`allowedNamespaces.Kube_System.serviceAccounts[1]: "not ok" is not the name of a service account`,
		"allowedNamespaces.Kube_System.serviceAccounts[2]: a number where a string is expected",
		`allowedNamespaces.kube-system: unknown key "serviceaccounts"; known are serviceAccounts`,
		"allowedNamespaces.other: a list where a mapping is expected",
		"hostProcess: true is none of Ignore, Audit, Warn, Deny",
		`unknown key "allowedNamespace"; known are allowedNamespaces, guardedPipes, hostProcess, requirement`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestParseParametersRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"an empty file":               "",
		"only comments":               "# nothing\n",
		"a list":                      "- a",
		"a string":                    "hello",
		"text that is not YAML":       "a: [",
		"a key twice":                 "hostProcess: Deny\nhostProcess: Audit",
		"a namespace twice":           "allowedNamespaces:\n  a: {}\n  a: {}",
		"no guarded pipe":             "guardedPipes: []",
		"guarded pipes that are null": "guardedPipes:",
		"guarded pipes as a string":   "guardedPipes: csi-proxy*",
		"a star alone in a name":      `guardedPipes: ["csi*proxy"]`,
		"a requirement that is null":  "requirement:",
		"accounts as a string":        "allowedNamespaces: {a: {serviceAccounts: b}}",
		"namespaces as a list":        "allowedNamespaces: [a]",
		"a wildcard for namespaces":   `allowedNamespaces: {"*": {}}`,
		"more than a megabyte":        "hostProcess: Deny #" + strings.Repeat("x", maxParameters),
	} {
		if p, err := ParseParameters([]byte(text)); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		}
	}
}

func TestParseParametersKeepsDefaultsOfKeysThatAreLeftOut(t *testing.T) {
	for text, change := range map[string]func(*Parameters){
		"{}":                            func(*Parameters) {},
		"hostProcess: Deny":             func(p *Parameters) { p.HostProcess = HostProcessDeny },
		"requirement: AllowedNamespace": func(p *Parameters) { p.Requirement = AllowedNamespace },
		`guardedPipes: [docker_engine]`: func(p *Parameters) { p.GuardedPipes = []string{"docker_engine"} },
		"allowedNamespaces:":            func(*Parameters) {},
		"allowedNamespaces: {a: , b: {}, c: {serviceAccounts: }, d: {serviceAccounts: []}, e: {serviceAccounts: [x, y.z]}}": func(p *Parameters) {
			p.AllowedNamespaces = map[string]Subjects{"a": {}, "b": {}, "c": {}, "d": {ServiceAccounts: []string{}}, "e": {ServiceAccounts: []string{"x", "y.z"}}}
		},
	} {
		want := DefaultParameters()
		change(&want)
		got, err := ParseParameters([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestLoadParametersNamesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "parameters.yaml")
	if _, err := LoadParameters(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte("hostProcess: No"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadParameters(file); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a faulty file: %v", err)
	}
	if err := os.WriteFile(file, []byte("hostProcess: Warn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := LoadParameters(file); err != nil || p.HostProcess != HostProcessWarn {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestDataIsWhatPoliciesAreDocumentedToSee(t *testing.T) {
	want := map[string]any{"pipeguard": map[string]any{"parameters": map[string]any{
		"guardedPipes":      []any{"csi-proxy*"},
		"requirement":       "PrivilegedOrAllowedNamespace",
		"allowedNamespaces": map[string]any{"kube-system": map[string]any{"serviceAccounts": []any{"csi-azuredisk-node-sa"}}},
		"hostProcess":       "Audit",
	}}}
	if diff := cmp.Diff(want, allowing().Data()); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func FuzzParseParameters(f *testing.F) {
	f.Add("guardedPipes: [a*]\nallowedNamespaces: {a: {serviceAccounts: [b]}}\nhostProcess: Deny\nrequirement: AllowedNamespace")
	f.Add("{}")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseParameters([]byte(text))
		if err != nil {
			return
		}
		if _, err := p.Guard(); err != nil {
			t.Errorf("accepted parameters without a guard: %v", err)
		}
	})
}

func TestTheSampleIsWhatItsCommentsSay(t *testing.T) {
	const sample = "../../config/samples/parameters.yaml"
	p, err := LoadParameters(sample)
	if err != nil {
		t.Fatal(err)
	}
	want := Parameters{
		GuardedPipes: DefaultParameters().GuardedPipes, // it says that this is the default
		Requirement:  AllowedNamespace,
		AllowedNamespaces: map[string]Subjects{
			"kube-system":       {ServiceAccounts: []string{"csi-azuredisk-node-sa", "csi-azurefile-node-sa", "csi-smb-node-sa"}},
			"gce-pd-csi-driver": {ServiceAccounts: []string{"csi-gce-pd-node-sa-win"}},
		},
		HostProcess: HostProcessWarn,
	}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.FieldsFunc(string(text), func(r rune) bool { return !unicode.IsLetter(r) })
	for _, word := range []string{
		"guardedPipes", "requirement", "allowedNamespaces", "serviceAccounts", "hostProcess",
		string(PrivilegedOrAllowedNamespace), string(AllowedNamespace), string(PrivilegedAndAllowedNamespace),
		string(HostProcessIgnore), string(HostProcessAudit), string(HostProcessWarn), string(HostProcessDeny),
	} {
		if !slices.Contains(words, word) {
			t.Errorf("it does not mention %s", word)
		}
	}
}
