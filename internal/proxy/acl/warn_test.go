package acl

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

func TestWarnings(t *testing.T) {
	account := []CallerPattern{{ServiceAccount: "kube-system/node-sa"}}
	namespace := []CallerPattern{{Namespace: "kube-system"}}
	token := []CallerPattern{{Namespace: "kube-system", Token: true}}
	policy, err := New(Spec{
		Modes: []PipeMode{{"disk-v1", access.LogOnly}, {"volume-v1", access.Enforce}},
		Rules: []Rule{
			{Name: "wide", Pipes: []string{"volume-*", "filesystem-*"}, Operations: []string{"FormatVolume", "Mkdir"}, Callers: namespace},
			{Name: "shadowed", Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume"}, Callers: token, Permits: []string{access.Reformat}},
			{Name: "shadowed by paths", Pipes: []string{"filesystem-v1"}, Operations: []string{"Mkdir"}, Callers: token, Paths: []string{`C:\a`}},
			{Name: "names", Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume"}, Callers: account},
			{Name: "not shadowed", Pipes: []string{"volume-v1"}, Operations: []string{"FormatVolume", "MountVolume"}, Callers: account},
			{Name: "no use", Pipes: []string{"volume-v1"}, Operations: []string{"GetVolumeStats"}, Callers: account, Permits: []string{access.Reformat, access.SystemDisk}},
			{Name: "no path", Pipes: []string{"disk-v1", "filesystem-v1"}, Operations: []string{"Rmdir", "Rescan"}, Callers: account, Paths: []string{`C:\a`}},
			{Name: "star", Pipes: []string{"smb-v1"}, Operations: []string{"*"}, Callers: account},
			{Name: "all containers", Pipes: []string{"disk-v1"}, Operations: []string{"Rescan"}, Callers: []CallerPattern{{User: "S-1-5-93-2-1"}}},
			{Name: "tag", Pipes: []string{"disk-v1"}, Operations: []string{"Rescan"}, Callers: []CallerPattern{{ServiceAccount: "a/b", Image: "r.io/a:v1"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ field, problem string }{
		{"pipes[0]", "every process that can open it"},
		{"rules[0].callers[0]", "every pod of namespace kube-system"},
		{"rules[1]", "never decides: rule wide comes before it and covers all that it does, and does not permit Reformat"},
		{"rules[2]", "never decides: rule wide"},
		{"rules[5].permits[0]", "Reformat is for FormatVolume"},
		{"rules[5].permits[1]", "SystemDisk is for"},
		{"rules[6].operations[1]", "Rescan names no path"},
		{"rules[7].operations", "* for a container"},
		{"rules[8].callers[0]", "every process-isolated container"},
		{"rules[9].callers[0].image", "a digest"},
	}
	got := policy.Warnings()
	if len(got) != len(want) {
		t.Fatalf("%d warnings, want %d:\n%v", len(got), len(want), got)
	}
	for i, w := range want {
		if got[i].Field != w.field || !strings.Contains(got[i].Problem, w.problem) {
			t.Errorf("warning %d is %v, want %s: …%s…", i, got[i], w.field, w.problem)
		}
	}
	if got := DenyAll().Warnings(); len(got) > 0 {
		t.Errorf("DenyAll: %v", got)
	}
}

// A rule that is said never to decide must never decide.
func TestShadowedRulesNeverDecide(t *testing.T) {
	shadowed := 0
	for seed := range uint64(500) {
		r := newRand(seed)
		policy, err := New(randomSpec(r))
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{}
		for _, w := range policy.Warnings() {
			if strings.Contains(w.Problem, "never decides") {
				said[policy.rules[numberOf(w.Field)].Name] = true
				shadowed++
			}
		}
		for range 60 {
			if q := randomRequest(r); said[policy.Decide(q).Rule] {
				t.Fatalf("seed %d: %+v is decided by %s", seed, q, policy.Decide(q).Rule)
			}
		}
	}
	if shadowed < 50 {
		t.Errorf("only %d rules were shadowed: too few to prove anything", shadowed)
	}
}
