package admission

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/policy"
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
hostPaths:
equalPower: deny
equalPowerPipes: ["docker*engine", ok]
equalPowerPaths: ["relative", 7]
allowedNamespace: {}
`), nil)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"guardedPipes[1]: ",
		"guardedPipes[2]: a number where a string is expected",
		"requirement: privilegedOrAllowedNamespace is none of PrivilegedOrAllowedNamespace, PrivilegedAndAllowedNamespace, AllowedNamespace",
		`allowedNamespaces.Kube_System: "Kube_System": want lower-case letters`,
		`allowedNamespaces.Kube_System.serviceAccounts[1]: "not ok" is not the name of a service account`,
		"allowedNamespaces.Kube_System.serviceAccounts[2]: a number where a string is expected",
		`allowedNamespaces.kube-system: unknown key "serviceaccounts"; known to this release are serviceAccounts`,
		"allowedNamespaces.other: a list where a mapping is expected",
		"hostProcess: true is none of Ignore, Audit, Warn, Deny",
		`unknown key "allowedNamespace"; known to this release are action, allowedNamespaces, equalPower, equalPowerPaths, equalPowerPipes, guardedHostPaths, guardedPipes, hostPaths, hostProcess, hostProcessAllowed, pipePolicies, requirement`,
		"hostPaths: there is no value; leave it out, or write one of Ignore, Audit, Warn, Deny",
		"equalPower: deny is none of Ignore, Audit, Warn, Deny",
		"equalPowerPipes[0]: ",
		"equalPowerPaths[0]: ",
		"equalPowerPaths[1]: a number where a string is expected",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestParseParametersRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"an empty file":                      "",
		"only comments":                      "# nothing\n",
		"a list":                             "- a",
		"a string":                           "hello",
		"text that is not YAML":              "a: [",
		"two documents":                      "hostProcess: Audit\n---\nhostProcess: Deny\n",
		"a key twice":                        "hostProcess: Deny\nhostProcess: Audit",
		"a namespace without a value":        "allowedNamespaces: {a: }",
		"a namespace twice":                  "allowedNamespaces:\n  a: {}\n  a: {}",
		"settings that look like a comment":  "hostProcess: Deny\n# allow:\u2028allowedNamespaces: {evil: {}}\n",
		"a value that holds in two places":   "equalPower: &a Warn\nhostPaths: *a\n",
		"a value that looks like another":    "guardedPipes: [!!binary Kg==]",
		"no guarded pipe":                    "guardedPipes: []",
		"guarded pipes that are null":        "guardedPipes:",
		"guarded pipes as a string":          "guardedPipes: csi-proxy*",
		"a star alone in a name":             `guardedPipes: ["csi*proxy"]`,
		"a requirement that is null":         "requirement:",
		"accounts as a string":               "allowedNamespaces: {a: {serviceAccounts: b}}",
		"accounts that are null":             "allowedNamespaces: {a: {serviceAccounts: }}",
		"policies that are null":             "pipePolicies:",
		"namespaces as a list":               "allowedNamespaces: [a]",
		"host processes of a namespace":      "hostProcessAllowed: {a: {}}",
		"host processes of nobody":           "hostProcessAllowed: {a: {serviceAccounts: []}}",
		"host processes of anybody":          `hostProcessAllowed: {a: {serviceAccounts: ["*"]}}`,
		"host processes of any namespace":    `hostProcessAllowed: {"*": {serviceAccounts: [b]}}`,
		"a wildcard for namespaces":          `allowedNamespaces: {"*": {}}`,
		"an equal power that is null":        "equalPower:",
		"an action that ignores":             "action: Ignore",
		"an action that is not known":        "action: deny",
		"an action that is null":             "action:",
		"actions as a list":                  "action: [Audit]",
		"pipes of equal power as a string":   "equalPowerPipes: docker_engine",
		"pipes of equal power that are null": "equalPowerPipes:",
		"a path of equal power on no drive":  `equalPowerPaths: ['\Windows']`,
		"more than a megabyte":               "hostProcess: Deny #" + strings.Repeat("x", maxParameters),
	} {
		if p, err := ParseParameters([]byte(text), nil); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		}
	}
}

func TestParseParametersKeepsDefaultsOfKeysThatAreLeftOut(t *testing.T) {
	for text, change := range map[string]func(*Parameters){
		"{}":                            func(*Parameters) {},
		"hostProcess: Deny":             func(p *Parameters) { p.HostProcess = ActionDeny },
		"requirement: AllowedNamespace": func(p *Parameters) { p.Requirement = AllowedNamespace },
		`guardedPipes: [docker_engine]`: func(p *Parameters) { p.GuardedPipes = []string{"docker_engine"} },
		"allowedNamespaces:":            func(*Parameters) {},
		"action: Audit":                 func(p *Parameters) { p.Action = ActionAudit },
		"action: Warn":                  func(p *Parameters) { p.Action = ActionWarn },
		"equalPower: Ignore":            func(p *Parameters) { p.EqualPower = ActionIgnore },
		"hostPaths: Deny":               func(p *Parameters) { p.HostPaths = ActionDeny },
		"guardedHostPaths: []":          func(p *Parameters) { p.GuardedHostPaths = []string{} },
		"equalPowerPipes: []":           func(p *Parameters) { p.EqualPowerPipes = []string{} },
		`equalPowerPaths: ['D:\data']`:  func(p *Parameters) { p.EqualPowerPaths = []string{`D:\data`} },
		"allowedNamespaces: {a: {}, b: {}, d: {serviceAccounts: []}, e: {serviceAccounts: [x, y.z]}}": func(p *Parameters) {
			p.AllowedNamespaces = map[string]Subjects{"a": {}, "b": {}, "d": {ServiceAccounts: []string{}}, "e": {ServiceAccounts: []string{"x", "y.z"}}}
		},
		"hostProcessAllowed: {a: {serviceAccounts: [x, y.z]}}": func(p *Parameters) {
			p.HostProcessAllowed = map[string]Subjects{"a": {ServiceAccounts: []string{"x", "y.z"}}}
		},
	} {
		want := DefaultParameters()
		change(&want)
		got, err := ParseParameters([]byte(text), nil)
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
	if _, err := LoadParameters(file, nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.WriteFile(file, []byte("hostProcess: No"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadParameters(file, nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a faulty file: %v", err)
	}
	if err := os.WriteFile(file, []byte("hostProcess: Warn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := LoadParameters(file, nil); err != nil || p.HostProcess != ActionWarn {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestDataIsWhatPoliciesAreDocumentedToSee(t *testing.T) {
	want := map[string]any{
		"guardedPipes":      []any{"csi-proxy*"},
		"requirement":       "PrivilegedOrAllowedNamespace",
		"allowedNamespaces": map[string]any{"kube-system": map[string]any{"serviceAccounts": []any{"csi-azuredisk-node-sa"}}},
		"hostProcess":       "Audit",
		"equalPower":        "Audit",
		"hostPaths":         "Audit",
		"action":            "Deny",
	}
	if diff := cmp.Diff(want, allowing().data()); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func FuzzParseParameters(f *testing.F) {
	f.Add("guardedPipes: [a*]\nallowedNamespaces: {a: {serviceAccounts: [b]}}\nhostProcess: Deny\nrequirement: AllowedNamespace")
	f.Add("{}")
	f.Add("a: &a [*a]")
	f.Add("equalPower: Deny\nequalPowerPipes: [a]\nequalPowerPaths: ['C:\\a']")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseParameters([]byte(text), nil)
		if err != nil {
			return
		}
		if _, err := (Policies{Parameters: p}).Bind(policy.Modules{}); err != nil {
			t.Errorf("accepted parameters that nothing can decide with: %v", err)
		}
	})
}

func TestANamespaceWithoutServiceAccountsIsAWarning(t *testing.T) {
	p, err := ParseParameters([]byte("allowedNamespaces: {a: {}, b: {}, c: {serviceAccounts: []}, d: {serviceAccounts: [e]}}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Warnings(); len(got) != 3 || !strings.HasPrefix(got[2], "allowedNamespaces.c allows every service account") {
		t.Errorf("%q", got)
	}
}

func TestGuardedPipesThatAreNoneOfCSIProxyAreAWarning(t *testing.T) {
	for _, tt := range []struct {
		pipes []string
		warns bool
	}{
		{DefaultParameters().GuardedPipes, false}, {[]string{"x", "CSI-Proxy-Disk-v1"}, false}, {[]string{"*"}, false},
		{nil, false}, {[]string{"csi-proxy-dsk*"}, true}, {[]string{"disk-v1"}, true}, {[]string{"docker_engine"}, true},
	} {
		p := DefaultParameters()
		p.GuardedPipes = tt.pipes
		if got := p.Warnings(); (len(got) > 0) != tt.warns {
			t.Errorf("%q: %q", tt.pipes, got)
		}
	}
}
