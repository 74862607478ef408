package acl

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func TestExplainSaysOfEachRuleWhyNot(t *testing.T) {
	account := []CallerPattern{{ServiceAccount: "kube-system/node-sa", Container: "driver"}}
	policy, err := New(Spec{Rules: []Rule{
		{Name: "pipe", Pipes: []string{"disk-*", "volume-v1"}, Operations: []string{"*"}, Callers: account},
		{Name: "operation", Pipes: []string{"filesystem-*"}, Operations: []string{"Rmdir"}, Callers: account},
		{Name: "paths", Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir"}, Callers: account, Paths: []string{`C:\a`}},
		{Name: "callers", Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir"}, Callers: []CallerPattern{
			{Namespace: "team-a"}, {User: "S-1-5-18"}, {Namespace: "kube-system", Container: "other"}, {Namespace: "kube-system", Image: "r.io/b/*"},
			{Namespace: "kube-system", HostProcess: isTrue()}, {Namespace: "kube-system", Token: true}, {Exe: `C:\other\*`}, {ServiceAccount: "kube-system/other"},
		}},
		{Name: "decides", Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir"}, Callers: account},
		{Name: "late", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: account},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := policy.Explain(access.Call{Group: "filesystem", Version: "v1", Operation: "Mkdir", Caller: podCaller, Paths: []string{`C:\b`}})
	want := []struct{ result, why string }{
		{"no", "pipes: none of disk-*, volume-v1 covers this pipe"},
		{"no", "operations: Mkdir is not among them"},
		{"no", `paths: "C:\\b" is not within its paths`},
		{"no", `callers[0]: namespace is "kube-system", not "team-a"; callers[1]: user is "S-1-5-93-2-1", not "S-1-5-18"; ` +
			`callers[2]: container is "driver", not "other"; callers[3]: image is "` + podCaller.Container.Image + `", not "r.io/b/*"; ` +
			`callers[4]: hostProcess is false, not true; callers[5]: no valid token was shown; callers[6]: exe is "C:\\driver\\node.exe", not "C:\\other\\*"; ` +
			`callers[7]: serviceAccount is "node-sa", not "other"`},
		{"decides", "callers[0] agrees"},
		{"covers", "callers[0] agrees; but rule decides comes before it"},
	}
	for i, w := range want {
		result := "no"
		switch {
		case got[i].Decides:
			result = "decides"
		case got[i].Covers:
			result = "covers"
		}
		if result != w.result || got[i].Why != w.why {
			t.Errorf("rule %s: %s, %s\nwant %s, %s", got[i].Rule, result, got[i].Why, w.result, w.why)
		}
	}
	unknown := policy.Explain(access.Call{Group: "filesystem", Version: "v1", Operation: "Mkdir", Caller: with(func(c *caller.Caller) { c.Pod.ServiceAccount = "" })})
	if !strings.Contains(unknown[4].Why, `serviceAccount is not known, and must be "node-sa"`) {
		t.Errorf("an unknown service account: %s", unknown[4].Why)
	}
	process := policy.Explain(access.Call{Group: "filesystem", Version: "v1", Operation: "Mkdir", Caller: with(func(c *caller.Caller) { c.Assurance = "process" })})
	if !strings.Contains(process[4].Why, `assurance is "process", and must be pod`) {
		t.Errorf("an unproven pod: %s", process[4].Why)
	}
}
