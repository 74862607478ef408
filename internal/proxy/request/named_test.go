package request

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

func TestRulesNameWhomTheySpellOut(t *testing.T) {
	pod := acl.CallerPattern{Namespace: "kube-system", ServiceAccount: "driver", Container: "azuredisk"}
	host := acl.CallerPattern{User: "S-1-5-18", Exe: `C:\agent.exe`}
	rule := func(pipe, operation string, callers ...acl.CallerPattern) acl.Spec {
		return acl.Spec{Rules: []acl.Rule{{Name: "r", Pipes: []string{pipe}, Operations: []string{operation}, Callers: callers}}}
	}
	entry := func(kind, a, b string, e map[string]any) map[string]any {
		var at any = []any{e}
		if b != "" {
			at = map[string]any{b: at}
		}
		return map[string]any{"volume": map[string]any{"FormatVolume": map[string]any{kind: map[string]any{a: at}}}}
	}
	nobody := map[string]any{}
	for name, c := range map[string]struct {
		spec acl.Spec
		want map[string]any
	}{
		"a pod":                                {rule("volume-v1", "FormatVolume", pod), entry("pods", "kube-system", "driver", map[string]any{"containers": []any{"azuredisk"}})},
		"all versions of a group":              {rule("volume-*", "FormatVolume", pod), entry("pods", "kube-system", "driver", map[string]any{"containers": []any{"azuredisk"}})},
		"any account with the container":       {rule("volume-v1", "FormatVolume", acl.CallerPattern{Namespace: "n", Container: "c"}), entry("pods", "n", "*", map[string]any{"containers": []any{"c"}})},
		"namespace within the account":         {rule("volume-v1", "FormatVolume", acl.CallerPattern{ServiceAccount: "ns/sa"}), entry("pods", "ns", "sa", map[string]any{})},
		"a program":                            {rule("volume-v1", "FormatVolume", host), entry("hosts", "S-1-5-18", "", map[string]any{"programs": []any{`C:\agent.exe`}})},
		"every operation":                      {rule("volume-v1", "*", pod, host), nobody},
		"every group":                          {rule("*-v1", "FormatVolume", pod, host), nobody},
		"every pipe":                           {rule("*", "FormatVolume", pod, host), nobody},
		"a forwarded pipe":                     {rule(`\\.\pipe\volume-v1`, "/a.B/C", pod, host), nobody},
		"a method by its full name":            {rule("volume-v1", "/v1.Volume/FormatVolume", pod, host), nobody},
		"a namespace alone":                    {rule("volume-v1", "FormatVolume", acl.CallerPattern{Namespace: "kube-system"}), nobody},
		"a namespace with a user and program":  {rule("volume-v1", "FormatVolume", acl.CallerPattern{Namespace: "kube-system", User: "S-1-5-18", Exe: `C:\agent.exe`}), nobody},
		"a user alone":                         {rule("volume-v1", "FormatVolume", acl.CallerPattern{User: "S-1-5-18"}), nobody},
		"a program of an image":                {rule("volume-v1", "FormatVolume", acl.CallerPattern{User: "S-1-5-18", Exe: `C:\agent.exe`, Image: "r.io/a:v1"}), nobody},
		"a program of a HostProcess container": {rule("volume-v1", "FormatVolume", acl.CallerPattern{User: "S-1-5-18", Exe: `C:\agent.exe`, HostProcess: new(true)}), nobody},
		"a program alone":                      {rule("volume-v1", "FormatVolume", acl.CallerPattern{Exe: `C:\agent.exe`}), nobody},
		"programs of a directory":              {rule("volume-v1", "FormatVolume", acl.CallerPattern{User: "S-1-5-18", Exe: `C:\tools\*`}), nobody},
	} {
		if diff := cmp.Diff(c.want, NamedBy(c.spec)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if len(c.want) == 0 {
			continue
		}
		if err := CheckNamed(NamedBy(c.spec)); err != nil {
			t.Errorf("%s: not what parameters are: %v", name, err)
		}
	}
}

func TestMergedKeepsBoth(t *testing.T) {
	a := map[string]any{"disk": map[string]any{"PartitionDisk": map[string]any{"pods": map[string]any{"n": map[string]any{"a": []any{map[string]any{}}}}}}}
	b := map[string]any{"disk": map[string]any{"PartitionDisk": map[string]any{"pods": map[string]any{"n": map[string]any{"a": []any{"second"}, "b": []any{"third"}}}}}}
	want := map[string]any{"disk": map[string]any{"PartitionDisk": map[string]any{"pods": map[string]any{"n": map[string]any{"a": []any{map[string]any{}, "second"}, "b": []any{"third"}}}}}}
	for range 2 { // the first must not have changed what it was given
		if diff := cmp.Diff(want, Merged(a, b)); diff != "" {
			t.Error(diff)
		}
	}
}

// A list of callers is not copied for each of them: a configuration may name tens of thousands.
func TestNamingManyCallersTakesMemoryForEachOnce(t *testing.T) {
	const callers = 20_000
	rule := acl.Rule{Pipes: []string{"volume-*"}, Operations: []string{"FormatVolume"}}
	for i := range callers {
		rule.Callers = append(rule.Callers, acl.CallerPattern{User: "S-1-5-18", Exe: fmt.Sprintf(`C:\%d.exe`, i)})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	named := NamedBy(acl.Spec{Rules: []acl.Rule{rule}})
	runtime.ReadMemStats(&after)
	if n := len(named["volume"].(map[string]any)["FormatVolume"].(map[string]any)["hosts"].(map[string]any)["S-1-5-18"].([]any)); n != callers {
		t.Errorf("%d callers are named", n)
	}
	if most, used := uint64(callers*2<<10), after.TotalAlloc-before.TotalAlloc; used > most {
		t.Errorf("%d bytes for %d callers, want %d at most", used, callers, most)
	}
}
