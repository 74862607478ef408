package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	builtin "github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/test/harness"
)

// copyPolicy writes the default policy to a directory, with the tests of mounts alone: all of them take most of a minute with the race detector.
func copyPolicy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policies")
	if err := os.CopyFS(dir, builtin.FS()); err != nil {
		t.Fatal(err)
	}
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.rego"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tests {
		if name := filepath.Base(file); name == "mount_test.rego" || name == "fixtures_test.rego" {
			continue
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestANewPolicyDecidesAndAnUnfitOneDoesNot(t *testing.T) {
	dir := copyPolicy(t)
	p := start(t, "--policy-dir="+dir)
	if a := p.review(t, "team-a", `\\.\pipe\acme_agent`); !a.Allowed {
		t.Fatalf("refused before there is a rule: %s", a.Result.Message)
	}
	if _, metrics := p.get(t, "metrics", "/metrics"); strings.Contains(metrics, "\npipeguard_policy_tests 0\n") {
		t.Error("a policy from a directory decides without its tests")
	}
	harness.Replace(t, filepath.Join(dir, "acme.rego"), `package pipeguard.admission

# METADATA
# title: Nobody gets the agent's pipe
# custom: {code: ACME-1, remedy: Ask the platform team.}
findings contains {"code": "ACME-1", "effect": "deny", "field": mount.field} if {
	some mount in input.mounts
	mount.pipe == "acme_agent"
}
`)
	var denied *admissionv1.AdmissionResponse
	eventually(t, "the new rule decides", func() bool {
		denied = p.review(t, "team-a", `\\.\pipe\acme_agent`)
		return denied.AuditAnnotations["codes"] == "ACME-1"
	})
	if !strings.Contains(denied.Result.Message, "ACME-1: ") || !strings.Contains(denied.Result.Message, "Fix: Ask the platform team.") {
		t.Errorf("message: %s", denied.Result.Message)
	}

	// A policy that lets the canary through compiles, and is not used.
	harness.Replace(t, filepath.Join(dir, "decision.rego"), "package pipeguard.admission\n\ndecision := {\"allowed\": true, \"findings\": []}\n")
	eventually(t, "the unfit policy is refused", func() bool {
		_, metrics := p.get(t, "metrics", "/metrics")
		return strings.Contains(metrics, "\npipeguard_policy_activations_total{result=\"refused\"} 1\n")
	})
	if a := p.review(t, "team-a", pipe); a.Allowed || a.AuditAnnotations["revision"] != denied.AuditAnnotations["revision"] {
		t.Errorf("the policy before it does not decide: %+v", a)
	}
	if status, body := p.get(t, "health", "/readyz"); status != 200 {
		t.Errorf("/readyz: %d %q", status, body)
	}
	if p.logs.FilterMessage("policies not activated").Len() == 0 {
		t.Error("the log does not say that the policy was not activated")
	}
}

func TestParametersAreReadAgainWithThePolicies(t *testing.T) {
	dir := copyPolicy(t)
	params := filepath.Join(t.TempDir(), "parameters.yaml")
	harness.Replace(t, params, "{}")
	p := start(t, "--policy-dir="+dir, "--params="+params)
	if a := p.review(t, "drivers", pipe); a.Allowed {
		t.Fatal("admitted before its namespace is allowed")
	}
	harness.Replace(t, params, "allowedNamespaces: {drivers: {}}\nguardedPipes: [csi-proxy*, docker_engine]\n")
	harness.Replace(t, filepath.Join(dir, "touch.rego"), "package pipeguard.touch\n")
	eventually(t, "the namespace is allowed", func() bool { return p.review(t, "drivers", pipe).Allowed })
	eventually(t, "the new pipe is guarded", func() bool {
		return p.review(t, "team-a", `\\.\pipe\docker_engine`).AuditAnnotations["codes"] == "PG001"
	})
}
