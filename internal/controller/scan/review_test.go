package scan

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
)

// defaultPolicy is the policy that is built in, with a PipePolicy of the API.
func defaultPolicy(t testing.TB) *policy.Engine { return engineOf(t, admission.DefaultParameters()) }

func engineOf(t testing.TB, parameters admission.Parameters) *policy.Engine {
	t.Helper()
	files, err := policy.LoadFS(policies.FS())
	if err != nil {
		t.Fatal(err)
	}
	// The policy's own tests take most of an activation's time, and are run where the policy is.
	maps.DeleteFunc(files.Files, func(name, _ string) bool {
		return strings.HasSuffix(name, "_test.rego") && name != "decision_test.rego" && name != "fixtures_test.rego"
	})
	modules, err := admission.Policies{
		Parameters: parameters,
		PipePolicies: map[string]admission.PipePolicy{"disks": {
			Pipes: []string{"vendor-disks"}, Action: admission.ActionDeny, Requirement: admission.AllowedNamespace,
		}},
	}.Bind(files)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := policy.New(policy.Options{Timeout: 10 * time.Second}) // a slow machine is not what is tested
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Activate(t.Context(), modules); err != nil {
		t.Fatal(err)
	}
	return engine
}

func hostPathPod(path string) string {
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"n","uid":"u","resourceVersion":"1"},
		"spec":{"containers":[{"name":"c","image":"i","volumeMounts":[{"name":"v","mountPath":"\\\\.\\pipe\\x"}]}],
		"volumes":[{"name":"v","hostPath":{"path":%q}}]}}`, path)
}

func TestReviewsAskTheWebhooksPolicies(t *testing.T) {
	engine := defaultPolicy(t)
	reviewer, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	judge := Reviews(reviewer, engine)
	critical := func(code, field string, policies ...string) Finding {
		f := finding(code, "deny", field, policies...)
		f.Known, f.Severity = true, "critical"
		return f
	}
	active, _ := engine.Active()
	for _, c := range []struct {
		name, raw string
		want      []Finding // without texts
	}{
		{"a pod without pipes", hostPathPod(`/var/log`), nil},
		{"a guarded pipe", hostPathPod(`\\.\pipe\csi-proxy-disk-v1`), []Finding{critical("PG001", "spec.containers[0].volumeMounts[0]")}},
		{"a pipe that a PipePolicy governs", hostPathPod(`\\.\pipe\vendor-disks`), []Finding{critical("PG010", "spec.containers[0].volumeMounts[0]", "disks")}},
		{"a PersistentVolume that a subPath leads to a pipe", `{"kind":"PersistentVolume","apiVersion":"v1","metadata":{"name":"v"},"spec":{"hostPath":{"path":"\\"}}}`, []Finding{
			critical("PG003", "spec.hostPath.path"),
		}},
	} {
		j, err := judge(t.Context(), []byte(c.raw))
		if err != nil || j.Failure != "" || j.Revision != active.Revision() {
			t.Errorf("%s: %+v, %v", c.name, j, err)
		}
		for i := range j.Findings {
			if j.Findings[i].Text == "" {
				t.Errorf("%s: a finding without text", c.name)
			}
			j.Findings[i].Text = ""
			if len(j.Findings[i].Policies) == 0 {
				j.Findings[i].Policies = nil
			}
		}
		if d := cmp.Diff(c.want, j.Findings); d != "" {
			t.Errorf("%s: findings (-want +got):\n%s", c.name, d)
		}
	}
	for name, raw := range map[string]string{
		"no JSON":         `{`,
		"an unknown kind": `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"}}`,
		"no kind":         `{"metadata":{"name":"s"}}`,
	} {
		if j, err := judge(t.Context(), []byte(raw)); err == nil && j.Failure == "" {
			t.Errorf("%s: judged as %+v", name, j)
		}
	}
}

func TestReviewWithoutDecisionIsAFailureThatReadsTheSameEachTime(t *testing.T) {
	res := admission.Result{
		Reason: string(policy.ReasonType), Revision: "sha256:1", Code: admission.CodeFailure,
		Message: "PG999: Pipeguard refuses what it cannot judge (type): no decision.\nDecision abc.",
	}
	j, err := judgedFrom(&res, noRule)
	want := Judged{Revision: "sha256:1", Failure: "PG999: Pipeguard refuses what it cannot judge (type): no decision."}
	if d := cmp.Diff(want, j); d != "" || err != nil {
		t.Errorf("judgedFrom (-want +got):\n%s%v", d, err)
	}
	for reason, want := range map[policy.Reason]bool{
		policy.ReasonOverload: true, policy.ReasonTimeout: true, policy.ReasonNoPolicy: true,
		policy.ReasonType: false, policy.ReasonInputSize: false, policy.ReasonPanic: false, "object": false,
	} {
		res.Reason = string(reason)
		if j, _ := judgedFrom(&res, noRule); j.Passing != want {
			t.Errorf("%s: passing = %v", reason, j.Passing)
		}
	}
}

func TestRefusalWithoutFindingIsAnError(t *testing.T) {
	warned := admission.Detail{Finding: policy.Finding{Code: "PG004", Effect: policy.EffectWarn}}
	for _, details := range [][]admission.Detail{nil, {warned}} {
		if j, err := judgedFrom(&admission.Result{Details: details}, noRule); err == nil {
			t.Errorf("judged as %+v", j)
		}
	}
}

func TestPoliciesThatChangeDuringAReviewAreNotMixed(t *testing.T) {
	engine := defaultPolicy(t)
	reviewer, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	none, err := policy.New(policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j, err := Reviews(reviewer, none)(context.Background(), []byte(hostPathPod(`\\.\pipe\csi-proxy-disk-v1`)))
	if err != nil || j.Failure == "" || !j.Passing {
		t.Errorf("judged as %+v, %v; want a failure of the moment", j, err)
	}
}

func noRule(string) (policy.Rule, bool) { return policy.Rule{}, false }
