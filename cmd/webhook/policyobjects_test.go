package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
	builtin "github.com/pipeguard/pipeguard/policies"
)

// judgePolicies answers requests about policy objects, with the built-in policy and nothing else in the cluster.
func judgePolicies(t *testing.T) *policyObjects {
	t.Helper()
	base, err := policy.LoadFS(builtin.FS())
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPolicyObjects(func(context.Context) (policyset.Sources, error) {
		return policyset.Sources{Base: base, Parameters: admission.DefaultParameters()}, nil
	}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	p.now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	return p
}

func policyRequest(kind, object string) ctrladmission.Request {
	return ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Name: "p",
		Kind:   metav1.GroupVersionKind{Group: v1alpha1.Group, Version: "v1alpha1", Kind: kind},
		Object: runtime.RawExtension{Raw: []byte(object)},
	}}
}

func pipePolicyObject(spec string) string {
	return `{"apiVersion":"pipeguard.dev/v1alpha1","kind":"PipePolicy","metadata":{"name":"p"},"spec":` + spec + `}`
}

// moduleObject is a PolicyModule with one rule and one test.
func moduleObject(t *testing.T, rule, test string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "pipeguard.dev/v1alpha1", "kind": "PolicyModule", "metadata": map[string]any{"name": "p"},
		"spec": map[string]any{"modules": []any{
			map[string]any{"name": "rule.rego", "rego": rule}, map[string]any{"name": "rule_test.rego", "rego": test},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

const (
	houseRule = "package pipeguard.admission\n\nfindings contains {\"code\": \"H1\", \"effect\": \"warn\", \"field\": m.field} if some m in input.mounts\n"
	houseTest = "package house_test\n\nimport data.pipeguard.admission\n\ntest_it if admission.findings with input as {\"mounts\": [{\"field\": \"f\"}]}\n"
)

func labels(t *testing.T, n int) string {
	t.Helper()
	all := map[string]string{}
	for i := range n {
		all[fmt.Sprint("l", i)] = "x"
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPolicyObjectsAreRefusedWithThePlaceOfTheFault(t *testing.T) {
	p := judgePolicies(t)
	for name, c := range map[string]struct {
		kind, object string
		code         int32
		field, want  string
	}{
		"Rego that does not parse":          {"PolicyModule", moduleObject(t, "package x\n\ny :=\n", houseTest), 422, "spec.modules[0].rego", "rule.rego:4:1"},
		"Rego with a misspelt function":     {"PolicyModule", moduleObject(t, "package x\n\ny := countt([1])\n", houseTest), 422, "spec.modules[0].rego", "rule.rego:3:6"},
		"Rego that reaches out":             {"PolicyModule", moduleObject(t, "package x\n\ny := http.send({\"url\": \"http://x\", \"method\": \"get\"})\n", houseTest), 422, "spec.modules[0].rego", "http.send"},
		"a test that fails":                 {"PolicyModule", moduleObject(t, houseRule, "package house_test\n\ntest_it if 1 == 2\n"), 422, "spec.modules[1].rego", "rule_test.rego:3"},
		"Rego that opens everything":        {"PolicyModule", moduleObject(t, "package pipeguard.admission\n\nnamespace_suffices if true\n", houseTest), 422, "spec.modules[0].rego", "belongs to the base policy"},
		"no tests":                          {"PolicyModule", `{"apiVersion":"pipeguard.dev/v1alpha1","kind":"PolicyModule","metadata":{"name":"p"},"spec":{"modules":[{"name":"a.rego","rego":"package a"}]}}`, 422, "spec.modules", "_test.rego"},
		"a module that exempts a namespace": {"PolicyModule", moduleObject(t, "package pipeguard.admission\n\nprivilege_permits(_) if input.namespace == \"evil\"\n", houseTest), 422, "spec.modules[0].rego", "rule.rego:3:1: addition: data.pipeguard.admission.privilege_permits belongs to the base policy"},
		"a field that nobody knows":         {"PipePolicy", pipePolicyObject(`{"pipes":["x"],"subject":[]}`), 400, "", "subject"},
		"a field in another case":           {"PipePolicy", pipePolicyObject(`{"Pipes":["x"]}`), 400, "", "Pipes"},
		"a pattern that is a path":          {"PipePolicy", pipePolicyObject(`{"pipes":["\\\\.\\pipe\\x"]}`), 422, "spec", "pipe"},
		"an image that is everybody's":      {"PipePolicy", pipePolicyObject(`{"pipes":["x"],"subjects":[{"name":"a","namespace":"b","images":["*"]}]}`), 422, "spec", "image"},
		"a thousand labels":                 {"PipePolicy", strings.Replace(pipePolicyObject(`{"pipes":["x"]}`), `"metadata":{`, `"metadata":{"labels":`+labels(t, 1000)+`,`, 1), 422, "metadata.labels", "at most 256"},
		"an object that is no JSON":         {"PipePolicy", `{`, 400, "", "read the object"},
		"a kind that is judged elsewhere":   {"Pod", `{}`, 403, "", "not judged here"},
		"a report, which only we may write": {"PipeReport", `{}`, 403, "", "not judged here"},
	} {
		t.Run(name, func(t *testing.T) {
			res := p.Handle(t.Context(), policyRequest(c.kind, c.object))
			if res.Allowed || res.Result == nil || res.Result.Code != c.code || !strings.Contains(res.Result.Message, c.want) {
				t.Fatalf("allowed %t, %+v; want %d with %q", res.Allowed, res.Result, c.code, c.want)
			}
			if c.field == "" {
				return
			}
			if causes := res.Result.Details.Causes; len(causes) == 0 || causes[0].Field != c.field {
				t.Errorf("causes %+v, want field %s", causes, c.field)
			}
		})
	}
}

func TestDeletionsAndOtherGroupsAreNotJudgedWithAYes(t *testing.T) {
	p := judgePolicies(t)
	deletion := policyRequest("PipePolicy", pipePolicyObject(`{"pipes":["x"]}`))
	deletion.Operation = admissionv1.Delete
	other := policyRequest("PipePolicy", pipePolicyObject(`{"pipes":["x"]}`))
	other.Kind.Group = "example.org"
	for name, req := range map[string]ctrladmission.Request{"a deletion": deletion, "another group": other} {
		if res := p.Handle(t.Context(), req); res.Allowed {
			t.Errorf("%s was admitted", name)
		}
	}
}

func TestGoodPolicyObjectsPassWithWhatTheirAuthorMayNotHaveMeant(t *testing.T) {
	p := judgePolicies(t)
	for name, c := range map[string]struct {
		kind, object string
		want         []string
	}{
		"a module":                {"PolicyModule", moduleObject(t, houseRule, houseTest), nil},
		"a policy":                {"PipePolicy", pipePolicyObject(`{"pipes":["x"],"subjects":[{"name":"a","namespace":"b","serviceAccounts":["c"]}]}`), nil},
		"a policy for nobody":     {"PipePolicy", pipePolicyObject(`{"pipes":["x"]}`), []string{"nobody may use"}},
		"a subject for everybody": {"PipePolicy", pipePolicyObject(`{"pipes":["x"],"subjects":[{"name":"a","namespace":"b"}]}`), []string{"any in namespace b"}},
		"a subject that expired": {"PipePolicy", pipePolicyObject(`{"pipes":["x"],"subjects":[{"name":"a","namespace":"b","serviceAccounts":["c"],
			"owner":"o","reason":"r","expiresAt":"2025-12-31T00:00:00Z"}]}`), []string{"expired"}},
		"a subject that expires soon": {"PipePolicy", pipePolicyObject(`{"pipes":["x"],"subjects":[{"name":"a","namespace":"b","serviceAccounts":["c"],
			"owner":"o","reason":"r","expiresAt":"2026-01-03T00:00:00Z"}]}`), []string{"expires in 48h"}},
	} {
		t.Run(name, func(t *testing.T) {
			res := p.Handle(t.Context(), policyRequest(c.kind, c.object))
			if !res.Allowed || len(res.Warnings) != len(c.want) {
				t.Fatalf("allowed %t, warnings %q, %+v", res.Allowed, res.Warnings, res.Result)
			}
			for i, w := range c.want {
				if !strings.Contains(res.Warnings[i], w) || len(res.Warnings[i]) > maxPolicyWarning {
					t.Errorf("warning %q, want %q in it and at most %d bytes", res.Warnings[i], w, maxPolicyWarning)
				}
			}
		})
	}
}

func TestPolicyObjectsAreRefusedWhileThePoliciesCannotBeRead(t *testing.T) {
	p := judgePolicies(t)
	p.sources = func(context.Context) (policyset.Sources, error) { return policyset.Sources{}, errors.New("no cache") }
	if res := p.Handle(t.Context(), policyRequest("PipePolicy", pipePolicyObject(`{"pipes":["x"]}`))); res.Allowed || res.Result.Code != 500 {
		t.Errorf("answer %+v", res)
	}
}

func TestASecondTrialWaitsNoLongerThanItsRequest(t *testing.T) {
	p := judgePolicies(t)
	<-p.validators // one is under way
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res := p.Handle(ctx, policyRequest("PipePolicy", pipePolicyObject(`{"pipes":["x"]}`))); res.Allowed || res.Result.Code != 429 {
		t.Errorf("answer %+v", res)
	}
}
