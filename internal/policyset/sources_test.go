package policyset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/version"
)

func revision(t *testing.T, s Sources) string {
	t.Helper()
	modules, err := s.Assemble()
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Options{TestTimeout: 10 * time.Minute}) // the machine may be busy
	if err != nil {
		t.Fatal(err)
	}
	active, err := engine.Activate(t.Context(), modules)
	if err != nil {
		t.Fatal(err)
	}
	return active.Revision()
}

func TestEqualSourcesHaveOneRevisionInWhateverOrder(t *testing.T) {
	a, b := pipes("a"), pipes("b", func(s *v1alpha1.PipePolicySpec) { s.Pipes = []v1alpha1.PipePattern{"other"} })
	m, n := module("m", "rule.rego", goodRule, "rule_test.rego", goodTest), module("n", "more_test.rego", strings.Replace(goodTest, "house_test", "more_test", 1))
	one, other := sources(t, a, b, m, n), sources(t, n, b, m, a)
	if x, y := revision(t, one), revision(t, other); x != y {
		t.Errorf("revisions %s and %s", x, y)
	}
	if x, y := revision(t, one), revision(t, sources(t, a, m, n)); x == y {
		t.Error("a PipePolicy makes no difference")
	}
	onNodes := pipes("a", func(s *v1alpha1.PipePolicySpec) {
		s.Node = v1alpha1.NodeRules{Action: v1alpha1.NodeLogOnly, Methods: []string{"Mkdir"}, PathPrefixes: []string{`C:\x`}, RequireToken: true}
		s.Subjects[0].Node = v1alpha1.SubjectRules{Methods: []string{"Rmdir"}, Permits: []v1alpha1.Permit{"Reformat"}, Limits: v1alpha1.CallLimits{Connections: new(int32(1))}}
	})
	if x, y := revision(t, one), revision(t, sources(t, onNodes, b, m, n)); x != y {
		t.Error("what nodes do changes the revision of admission")
	}
}

func TestAssembleNamesEachObjectThatIsUnfit(t *testing.T) {
	year10000 := metav1.NewTime(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		object any
		want   string
	}{
		"a pattern with a separator": {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Pipes[0] = `\\.\pipe\x` }), `PipePolicy "p"`},
		"no pipes":                   {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Pipes = nil }), `PipePolicy "p"`},
		"an action in lower case":    {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Admission.Action = "deny" }), `PipePolicy "p"`},
		"an unknown requirement":     {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Admission.Requirement = "None" }), `PipePolicy "p"`},
		"an unknown node action":     {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Node.Action = "Off" }), `PipePolicy "p"`},
		"a subject of no namespace":  {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Namespace = "" }), `PipePolicy "p"`},
		"two subjects of one name":   {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects = append(s.Subjects, s.Subjects[0]) }), `PipePolicy "p"`},
		"an image that is any":       {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].Images = []string{"*"} }), `PipePolicy "p"`},
		"an end after the year 9999": {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].ExpiresAt = &year10000 }), `PipePolicy "p"`},
		"an end that is no time":     {pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects[0].ExpiresAt = &metav1.Time{} }), `PipePolicy "p"`},
		"a policy of no name":        {pipes(""), `PipePolicy ""`},
		"a field of a later release": {unknown(pipes("p")), `PipePolicy "p": spec: Forbidden: release ` + version.Number() + ` does not know spec.x: upgrade the webhook`},
		"a module of a later one": {func() v1alpha1.PolicyModule {
			m := module("m", "a.rego", goodRule, "a_test.rego", goodTest)
			m.Unknown = "spec.x"
			return m
		}(), `PolicyModule "m": spec: Forbidden`},
		"a module without files":     {module("m"), `PolicyModule "m"`},
		"a module without tests":     {module("m", "a.rego", goodRule), `PolicyModule "m"`},
		"a file that is no Rego":     {module("m", "rule.txt", goodRule, "a_test.rego", goodTest), `PolicyModule "m"`},
		"a file above its directory": {module("m", "../rule.rego", goodRule, "a_test.rego", goodTest), `PolicyModule "m"`},
		"a file that occurs twice":   {module("m", "a.rego", goodRule, "a.rego", goodRule, "a_test.rego", goodTest), `PolicyModule "m"`},
		"a module of no name":        {module("", "a.rego", goodRule, "a_test.rego", goodTest), `PolicyModule ""`},
		"a name with a separator":    {module("m/n", "a.rego", goodRule, "a_test.rego", goodTest), `PolicyModule "m/n"`},
		"parameters that are a list": {func() v1alpha1.PolicyModule {
			m := module("m", "a.rego", goodRule, "a_test.rego", goodTest)
			m.Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(`[1]`)}
			return m
		}(), `PolicyModule "m"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := sources(t, pipes("fine"), c.object).Assemble()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "fine") {
				t.Errorf("error %v, want one of %s alone", err, c.want)
			}
			if _, ok := errors.AsType[*ObjectError](err); !ok {
				t.Errorf("error %T is no ObjectError", err)
			}
		})
	}
}

func unknown(p v1alpha1.PipePolicy) v1alpha1.PipePolicy {
	p.Unknown = "spec.x"
	return p
}

func TestOneNameIsOneObject(t *testing.T) {
	for name, s := range map[string]Sources{
		"PipePolicies":  sources(t, pipes("p"), pipes("p")),
		"PolicyModules": sources(t, module("m", "a.rego", goodRule, "a_test.rego", goodTest), module("m", "b.rego", goodRule, "a_test.rego", goodTest)),
	} {
		if _, err := s.Assemble(); !errors.Is(err, errTwice) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestABasePolicyKeepsOutOfTheModulesDirectory(t *testing.T) {
	s := sources(t, module("m", "a.rego", goodRule, "a_test.rego", goodTest))
	s.Base.Files["policymodules/m/a.rego"] = goodRule
	if _, err := s.Assemble(); err == nil || !strings.Contains(err.Error(), "policymodules/m/a.rego") {
		t.Errorf("error %v", err)
	}
}

func TestParametersOfAModuleStandUnderItsName(t *testing.T) {
	m := module("m", "a.rego", goodRule, "a_test.rego", goodTest)
	m.Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(`{"registries": ["a"], "n": 9223372036854775807}`)}
	modules, err := sources(t, m).Assemble()
	if err != nil {
		t.Fatal(err)
	}
	root, _ := modules.Data["pipeguard"].(map[string]any)
	all, _ := root["modules"].(map[string]any)
	got, _ := all["m"].(map[string]any)
	if _, ok := got["registries"]; !ok {
		t.Errorf("data %v", modules.Data)
	}
}

func TestProblemsAreSortedByTheirModule(t *testing.T) {
	good, bad := module("good", "a.rego", goodRule, "a_test.rego", goodTest), module("bad", "b.rego", "package x\n\ny := undefined_thing(1)\n", "b_test.rego", strings.Replace(goodTest, "house_test", "b_test", 1))
	byModule, others := ProblemsOf(try(t, sources(t, good, bad)))
	if len(byModule) != 1 || len(others) != 0 {
		t.Fatalf("problems %v, others %v", byModule, others)
	}
	p := byModule["bad"][0]
	want := v1alpha1.Problem{File: "b.rego", Line: 3, Column: 6, Code: p.Code, Message: p.Message}
	if diff := cmp.Diff(want, p); diff != "" || !strings.Contains(p.Message, "undefined_thing") {
		t.Errorf("problem %+v (-want +got):\n%s", p, diff)
	}
}

func TestATestThatFailsIsAProblemOfItsModule(t *testing.T) {
	byModule, _ := ProblemsOf(try(t, sources(t, module("m", "a.rego", goodRule, "a_test.rego", failingTest))))
	if i := slices.IndexFunc(byModule["m"], func(p v1alpha1.Problem) bool { return p.Code == codeTest && p.File == "a_test.rego" && p.Line == 3 }); i < 0 {
		t.Errorf("problems %+v", byModule)
	}
}

// A cluster takes a key without a value for one that is not there, and a list that is not there permits anything.
func TestAKeyOfASpecWithoutAValueIsRefused(t *testing.T) {
	const object = `{"apiVersion":"pipeguard.dev/v1alpha1","kind":"PipePolicy","metadata":{"name":"p","creationTimestamp":null},"spec":{"pipes":["csi-proxy-disk-v1"],
		"subjects":[{"name":"a","namespace":"b","serviceAccounts":["c"]%s}]%s},"status":null}`
	for _, tt := range []struct{ subject, spec, want string }{
		{want: ""},
		{subject: `,"images":null`, want: "spec.subjects[0].images: there is no value"},
		{subject: `,"images":[null]`, want: "spec.subjects[0].images[0]: there is no value"},
		{subject: `,"owner":"o","reason":"r","expiresAt":null`, want: "spec.subjects[0].expiresAt: there is no value"},
		{subject: `,"node":{"methods":null}`, want: "spec.subjects[0].node.methods: there is no value"},
		{spec: `,"node":null`, want: "spec.node: there is no value"},
	} {
		var s Sources
		err := s.Add("pipeguard.dev/v1alpha1", KindPipePolicy, fmt.Appendf(nil, object, tt.subject, tt.spec))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s%s: %v, want %q", tt.subject, tt.spec, err, tt.want)
		}
	}
}
