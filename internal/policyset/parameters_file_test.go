package policyset

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
)

func TestPoliciesOfParametersAreReadAsObjectsAre(t *testing.T) {
	_, err := admission.ParseParameters([]byte(`
pipePolicies:
  Bad_Name: {pipes: [x]}
  a: {pipes: [], Admission: {}, subjects: {}}
  b: {pipes: ["a*b"], admission: {action: deny, requirement: None, mode: x}, node: {path: x}, subjects: [{nam: x, expiresAt: tomorrow}, x]}
  c: [x]
  e: {pipes: [x], subjects: [{name: x, namespace: x, images: [y]}]}
  f: {pipes: [x], subjects: [{name: x, namespace: x, expiresAt: never}]}
  g: {pipes: [x], subjects: [{name: x, namespace: x, node: {limits: {burst: "1"}}}]}
  d: {pipes: [x], node: {methods: [mkdir]}, subjects: [{name: x, namespace: x, node: {limits: {callsPerSecond: 0}}}]}
`), ReadPipePolicy)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`pipePolicies.Bad_Name: a lowercase RFC 1123 subdomain`,
		`pipePolicies.a: read the object: subjects: a mapping where a list is expected`,
		"pipePolicies.b: read the object: ",
		"pipePolicies.e: read the object: subjects.images: a boolean where a string is expected; YAML takes y,",
		`pipePolicies.f: read the object: subjects[0].expiresAt: "never": want a time`,
		"pipePolicies.g: read the object: subjects.node.limits.burst: a string where a number is expected",
		"pipePolicies.c: a list where a mapping is expected",
		`pipePolicies.d: node.methods[0]: Invalid value: "mkdir": not a method of the node API: did you mean "Mkdir"?`,
		"pipePolicies.d: subjects[0].node.limits.callsPerSecond: Invalid value: 0: want 1 or more",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestPoliciesOfParametersAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"policies as a list":             "pipePolicies: [a]",
		"a policy that is null":          "pipePolicies: {a: }",
		"a policy twice":                 "pipePolicies:\n  a: {pipes: [x]}\n  a: {pipes: [x]}",
		"a policy without pipes":         "pipePolicies: {a: {subjects: []}}",
		"a policy's pipes that are null": "pipePolicies: {a: {pipes: }}",
		"an action that is null":         "pipePolicies: {a: {pipes: [x], admission: {action: }}}",
		"a subject without namespace":    "pipePolicies: {a: {pipes: [x], subjects: [{name: b}]}}",
		"a subject without name":         "pipePolicies: {a: {pipes: [x], subjects: [{namespace: b}]}}",
		"an end that is null":            "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, owner: c, reason: d, expiresAt: }]}}",
		"an end that is empty":           "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, owner: c, reason: d, expiresAt: ''}]}}",
		"an end without time":            "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, owner: c, reason: d, expiresAt: 2026-01-02}]}}",
		"an end that would mean never":   "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, owner: c, reason: d, expiresAt: '0001-01-01T00:00:00Z'}]}}",
		"an end that is a number":        "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, owner: c, reason: d, expiresAt: 2026}]}}",
		"an end without owner":           "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, reason: d, expiresAt: 2026-01-02T15:04:05Z}]}}",
		"accounts that are null":         "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, serviceAccounts: }]}}",
		"containers that are null":       "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, containers: }]}}",
		"images that are null":           "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, images: }]}}",
		"methods that are null":          "pipePolicies: {a: {pipes: [x], node: {methods: }}}",
		"an unknown action":              "pipePolicies: {a: {pipes: [x], admission: {action: deny}}}",
		"an unknown requirement":         "pipePolicies: {a: {pipes: [x], admission: {requirement: None}}}",
		"a mode of admission":            "pipePolicies: {a: {pipes: [x], admission: {mode: x}}}",
		"a path of nodes":                "pipePolicies: {a: {pipes: [x], node: {path: x}}}",
		"a misspelt name":                "pipePolicies: {a: {pipes: [x], subjects: [{nam: x, namespace: b}]}}",
		"a subject that is a text":       "pipePolicies: {a: {pipes: [x], subjects: [x]}}",
		"an end that is a word":          "pipePolicies: {a: {pipes: [x], subjects: [{name: b, namespace: b, owner: c, reason: d, expiresAt: tomorrow}]}}",
	} {
		if p, err := admission.ParseParameters([]byte(text), ReadPipePolicy); err == nil {
			t.Errorf("%s: accepted as %+v", name, p)
		}
	}
}

func TestPoliciesOfParametersSayWhatTheyShow(t *testing.T) {
	type Parameters = admission.Parameters
	ofAll := access.Permission{Methods: []string{"Mkdir"}, PathPrefixes: []string{`C:\x`}, RequireToken: true}
	for text, change := range map[string]func(*Parameters){
		"pipePolicies: {a: {pipes: [x]}}": func(p *Parameters) {
			p.PipePolicies = map[string]admission.PipePolicy{"a": {Pipes: []string{"x"}, Action: admission.ActionDeny, Requirement: admission.AllowedNamespace}}
		},
		`pipePolicies:
  exceptions.storage:
    pipes: [csi-proxy-*, "{0}"]
    admission: {action: Warn, requirement: PrivilegedAndAllowedNamespace}
    node: {action: LogOnly, methods: [Mkdir], pathPrefixes: ['C:\x'], requireToken: true}
    subjects:
      - {name: a, namespace: b, serviceAccounts: [c], containers: [d], images: ["e/f:*"]}
      - {name: g, namespace: h, owner: i, reason: j, expiresAt: 2026-01-02T16:04:05+01:00}`: func(p *Parameters) {
			p.PipePolicies = map[string]admission.PipePolicy{"exceptions.storage": {
				Pipes: []string{"csi-proxy-*", "{0}"}, Action: admission.ActionWarn, Requirement: admission.PrivilegedAndAllowedNamespace, LogOnly: true,
				Subjects: []access.Subject{
					{Name: "a", Namespace: "b", ServiceAccounts: []string{"c"}, Containers: []string{"d"}, Images: []string{"e/f:*"}, Permission: ofAll},
					{Name: "g", Namespace: "h", Owner: "i", Reason: "j", ExpiresAt: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC), Permission: ofAll},
				},
			}}
		},
	} {
		want := admission.DefaultParameters()
		change(&want)
		got, err := admission.ParseParameters([]byte(text), ReadPipePolicy)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(admission.PipePolicy{}, "Warnings")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestTheSampleIsWhatItsCommentsSay(t *testing.T) {
	const sample = "../../config/samples/parameters.yaml"
	p, err := admission.LoadParameters(sample, ReadPipePolicy)
	if err != nil {
		t.Fatal(err)
	}
	want := admission.Parameters{
		GuardedPipes: admission.DefaultParameters().GuardedPipes, // it says that this is the default
		Requirement:  admission.AllowedNamespace,
		Action:       admission.ActionDeny,
		AllowedNamespaces: map[string]admission.Subjects{
			"kube-system":       {ServiceAccounts: []string{"csi-azuredisk-node-sa", "csi-azurefile-node-sa", "csi-smb-node-sa"}},
			"gce-pd-csi-driver": {ServiceAccounts: []string{"csi-gce-pd-node-sa-win"}},
		},
		HostProcess:        admission.ActionWarn,
		HostProcessAllowed: map[string]admission.Subjects{"pipeguard-node": {ServiceAccounts: []string{"pipeguard-node"}}},
		EqualPower:         admission.ActionAudit,
		EqualPowerPipes:    admission.DefaultParameters().EqualPowerPipes,
		EqualPowerPaths:    admission.DefaultParameters().EqualPowerPaths,
		HostPaths:          admission.ActionAudit,
		GuardedHostPaths:   admission.DefaultParameters().GuardedHostPaths,
		PipePolicies: map[string]admission.PipePolicy{"smb": {
			Pipes: []string{"csi-proxy-smb-*"}, Action: admission.ActionDeny, Requirement: admission.AllowedNamespace,
			Subjects: []access.Subject{{
				Name: "node", Namespace: "kube-system", ServiceAccounts: []string{"csi-smb-node-sa"}, Containers: []string{"smb"},
			}},
		}},
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
		"guardedPipes", "requirement", "allowedNamespaces", "serviceAccounts", "hostProcess", "hostProcessAllowed",
		string(admission.PrivilegedOrAllowedNamespace), string(admission.AllowedNamespace), string(admission.PrivilegedAndAllowedNamespace),
		"equalPower", "equalPowerPipes", "equalPowerPaths", "pipePolicies",
		string(admission.ActionIgnore), string(admission.ActionAudit), string(admission.ActionWarn), string(admission.ActionDeny),
	} {
		if !slices.Contains(words, word) {
			t.Errorf("it does not mention %s", word)
		}
	}
}

func FuzzPoliciesOfParameters(f *testing.F) {
	f.Add("pipePolicies: {a: {pipes: [b*], admission: {action: Warn}, subjects: [{name: c, namespace: d, images: [e/*], owner: f, reason: g, expiresAt: 2026-01-02T15:04:05Z}]}}")
	f.Add("pipePolicies: {a: {pipes: [b], node: {methods: [Mkdir]}}}")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := admission.ParseParameters([]byte(text), ReadPipePolicy)
		if err != nil {
			return
		}
		if _, err := (admission.Policies{Parameters: p}).Bind(policy.Modules{}); err != nil {
			t.Errorf("accepted parameters that nothing can decide with: %v", err)
		}
	})
}
