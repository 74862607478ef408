package acl

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// pod is where the kubelet puts what belongs to a pod, which is as long as paths in requests usually are.
const pod = `\pods\6b0a4bd2-5cf5-4d5c-9d2f-5d1f6f6b2a10\volumes\kubernetes.io~csi\pvc-0c1de6f4-21a3-4a8f-8a0e-7b7c5a1b2c3d\mount`

// benchmarks are lists whose rules differ in one way each, so that nearly all of them do not match.
var benchmarks = []struct {
	name string
	rule func(n int) Rule
	last func(n int) access.Call // what the last of n rules covers
}{
	{
		"exe",
		func(i int) Rule {
			return Rule{Pipes: []string{"filesystem-*", "volume-v1"}, Operations: []string{"Mkdir", "Rmdir"},
				Callers: []CallerPattern{{User: "S-1-5-18", Exe: fmt.Sprintf(`C:\drivers\%d\node.exe`, i)}}}
		},
		func(n int) access.Call {
			return access.Call{Group: "filesystem", Version: "v1", Operation: "Rmdir",
				Caller: caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: fmt.Sprintf(`C:\drivers\%d\node.exe`, n-1)}}}
		},
	},
	{
		"account",
		func(i int) Rule {
			return Rule{Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir", "Rmdir"},
				Callers: []CallerPattern{{ServiceAccount: fmt.Sprintf("team-%d/node", i), Container: "driver", Image: "r.io/drivers/*"}}}
		},
		func(n int) access.Call { return benchRequest(fmt.Sprintf("team-%d", n-1)) },
	},
	{
		"account-and-paths",
		func(i int) Rule {
			return Rule{Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir", "Rmdir"}, Paths: []string{`C:\var\lib\kubelet\plugins`, `C:\var\lib\kubelet\pods`},
				Callers: []CallerPattern{{ServiceAccount: fmt.Sprintf("team-%d/node", i)}}}
		},
		func(n int) access.Call { return benchRequest(fmt.Sprintf("team-%d", n-1)) },
	},
	{
		"one-account-many-paths",
		func(i int) Rule {
			return Rule{Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir", "Rmdir"}, Paths: []string{fmt.Sprintf(`C:\var\lib\kubelet\plugins\%d`, i)},
				Callers: []CallerPattern{{ServiceAccount: "team/node"}}}
		},
		func(n int) access.Call {
			r := benchRequest("team")
			r.Paths = []string{fmt.Sprintf(`C:\var\lib\kubelet\plugins\%d\x`, n-1)}
			return r
		},
	},
	{
		"forwarded-pipe",
		func(i int) Rule {
			return Rule{Pipes: []string{fmt.Sprintf(`\\.\pipe\agent-%d`, i)}, Operations: []string{"/agent.v1.Workload/*"},
				Callers: []CallerPattern{{ServiceAccount: "team/node"}}}
		},
		func(n int) access.Call {
			r := benchRequest("team")
			r.Group, r.Version, r.Operation, r.Paths = fmt.Sprintf(`\\.\pipe\agent-%d`, n-1), "", "/agent.v1.Workload/Fetch", nil
			return r
		},
	},
}

func benchRequest(namespace string) access.Call {
	return access.Call{Group: "filesystem", Version: "v1", Operation: "Rmdir", Paths: []string{`C:\var\lib\kubelet\plugins\driver\x`},
		Caller: caller.Caller{Assurance: "pod", User: caller.User{SID: "S-1-5-93-2-1"}, Process: caller.Process{Exe: `C:\driver\node.exe`}, Pod: caller.Pod{Namespace: namespace, ServiceAccount: "node"}, Container: caller.Container{Name: "driver", Image: "r.io/drivers/node:v1"}}}
}

// BenchmarkDecide asks about the first rule of a list, the last, none, and a rule that holds but for its paths: of a path as
// long as most, and of a short one.
func BenchmarkDecide(b *testing.B) {
	for _, bm := range benchmarks {
		for _, n := range []int{10, 1_000, 10_000} {
			policy := benchPolicy(b, bm.rule, n)
			decide := func(name string, r access.Call, rule, reason string) {
				b.Run(fmt.Sprintf("%s/rules=%d/%s", bm.name, n, name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if d := policy.Decide(r); d.Rule != rule || !strings.Contains(d.Reason, reason) {
							b.Fatalf("%+v", d)
						}
					}
				})
			}
			decide("first", bm.last(1), "rule-0", "allowed by")
			decide("last", bm.last(n), fmt.Sprintf("rule-%d", n-1), "allowed by")
			if bm.name != "one-account-many-paths" {
				decide("denied", bm.last(n+1), "", "no rule")
			}
			if len(bm.rule(0).Paths) > 0 {
				r := bm.last(n)
				r.Paths = []string{`D:\var\lib\kubelet\plugins\driver\x`}
				decide("denied-for-a-short-path", r, "", "is not within its paths")
				r.Paths = []string{`D:\var\lib\kubelet` + pod}
				decide("denied-for-a-path", r, "", "is not within its paths")
				r.Paths = []string{bm.rule(n - 1).Paths[0] + pod}
				decide("last-with-a-long-path", r, fmt.Sprintf("rule-%d", n-1), "allowed by")
			}
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, bm := range benchmarks {
		spec := benchSpec(bm.rule, 10_000)
		b.Run(bm.name+"/rules=10000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := New(spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLimiter(b *testing.B) {
	l, limits := NewLimiter(0), access.Limits{CallsPerSecond: 1_000_000}
	for i := range 4096 {
		l.Call(caller.Principal{Exe: strconv.Itoa(i)}, "r", limits)
	}
	b.ReportAllocs()
	for b.Loop() {
		l.Call(caller.Principal{PodUID: "x", Container: "y"}, "r", limits)
	}
}

func benchSpec(rule func(int) Rule, n int) (s Spec) {
	for i := range n {
		r := rule(i)
		r.Name = fmt.Sprintf("rule-%d", i)
		s.Rules = append(s.Rules, r)
	}
	return s
}

func benchPolicy(tb testing.TB, rule func(int) Rule, n int) *Policy {
	tb.Helper()
	policy, err := New(benchSpec(rule, n))
	if err != nil {
		tb.Fatal(err)
	}
	return policy
}

// Of ten thousand rules only the one that matches allows, and nobody else is allowed by one of the others.
func TestTenThousandRules(t *testing.T) {
	for _, bm := range benchmarks {
		policy := benchPolicy(t, bm.rule, 10_000)
		for _, i := range []int{1, 5_000, 10_000} {
			r := bm.last(i)
			want := fmt.Sprintf("rule-%d", i-1)
			if d := policy.Decide(r); d.Rule != want {
				t.Errorf("%s: %+v is decided by %q, want %q", bm.name, r, d.Rule, want)
			}
			r.Operation = "RmdirContents"
			if d := policy.Decide(r); d.Allowed {
				t.Errorf("%s: %+v is allowed by %q", bm.name, r, d.Rule)
			}
		}
		if d := policy.Decide(bm.last(10_001)); d.Allowed {
			t.Errorf("%s: nobody's call is allowed by %q", bm.name, d.Rule)
		}
	}
}

// A list of few rules that names thousands of everything takes no more than its share of memory, and decides the same.
func TestIndexStaysBounded(t *testing.T) {
	var operations, pipes []string
	for i := range 1_000 {
		operations = append(operations, fmt.Sprintf("/a.B/C%d", i))
		pipes = append(pipes, fmt.Sprintf(`\\.\pipe\p%d`, i))
	}
	policy := benchPolicy(t, func(int) Rule {
		return Rule{Pipes: pipes, Operations: operations, Callers: []CallerPattern{{Namespace: "a"}}}
	}, 20)
	c := caller.Caller{Assurance: "pod", Pod: caller.Pod{Namespace: "a"}}
	if d := policy.Decide(access.Call{Group: `\\.\pipe\p999`, Operation: "/a.B/C999", Caller: c}); d.Rule != "rule-0" {
		t.Errorf("%+v", d)
	}
	if d := policy.Decide(access.Call{Group: `\\.\pipe\p999`, Operation: "/a.B/C1000", Caller: c}); d.Allowed {
		t.Errorf("%+v", d)
	}
}

func TestRevisionOfAListWithoutNewFieldsIsWhatItWas(t *testing.T) {
	policy, err := New(Spec{Rules: []Rule{{Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []CallerPattern{{User: "S-1-5-18"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := policy.Revision(); got != "sha256:1e9b989afc835b3b" {
		t.Errorf("revision %s", got)
	}
}
