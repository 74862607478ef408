package request

import (
	"fmt"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// format is an operation that the built-in policy refuses to callers that are not named.
func format(tb testing.TB) *apiserver.Call {
	tb.Helper()
	var call *apiserver.Call
	operations(tb, func(op *apiserver.Operation, m apiserver.Method) {
		if op.Group == "volume" && op.Name == "FormatVolume" {
			r := m.NewRequest()
			set(r.ProtoReflect(), `\\?\Volume{1}\`, 1)
			call = callOf(op.Group, op.Name, r)
		}
	})
	return call
}

// naming is data that names n service accounts, the driver of these tests last.
func naming(n int) map[string]any {
	entry := []any{map[string]any{"containers": []any{"plugin"}}}
	pods := map[string]any{"kube-system": map[string]any{"driver": entry}}
	for i := 1; i < n; i++ {
		pods[fmt.Sprintf("tenant-%d", i)] = map[string]any{"driver": entry}
	}
	return Data(map[string]any{"named": map[string]any{"volume": map[string]any{"FormatVolume": map[string]any{"pods": pods}}}})
}

// BenchmarkInput makes what a policy is shown, with the caller's part made for each call and once for its connection.
func BenchmarkInput(b *testing.B) {
	for _, isKept := range []bool{false, true} {
		b.Run(fmt.Sprintf("caller-kept=%v", isKept), func(b *testing.B) {
			call, s := mkdir(), driver()
			if isKept {
				s.Caller = NewCaller(s.Peer)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Input(call, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDecide is a whole question: the input made and the built-in policy asked, where that many callers are named. How it
// grows with what policies hold is measured beside them.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		e := activated(b, policy.Options{BaseTested: true}, naming(n))
		for _, c := range []struct {
			name string
			call *apiserver.Call
			rule string
			who  func(*Subject)
		}{
			{"ordinary", mkdir(), "", func(*Subject) {}},
			{"guarded-named", format(b), "", func(*Subject) {}},
			{"guarded-not-named", format(b), "PN004", func(s *Subject) { s.Peer.Pod.Namespace = "other" }},
		} {
			s := driver()
			c.who(s)
			s.Caller = NewCaller(s.Peer)
			b.Run(fmt.Sprintf("%s/named=%d", c.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if d := e.Decide(b.Context(), c.call, s); d.Rule != c.rule || d.Allowed() != (c.rule == "") {
						b.Fatalf("%+v", d)
					}
				}
			})
		}
	}
}

// BenchmarkActivate is what the built-in policy costs the start of a proxy, and what it would with its own tests.
func BenchmarkActivate(b *testing.B) {
	for _, isTested := range []bool{true, false} {
		b.Run(fmt.Sprintf("tests=%v", !isTested), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				activated(b, policy.Options{BaseTested: isTested}, nil)
			}
		})
	}
}

func activated(b *testing.B, o policy.Options, data map[string]any) *Evaluator {
	b.Helper()
	m, err := Modules(nil, data)
	if err != nil {
		b.Fatal(err)
	}
	e, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	s, err := e.Activate(b.Context(), m)
	if err != nil || (s.Tests() == 0) != o.BaseTested {
		b.Fatalf("%v, %d tests", err, s.Tests())
	}
	return e
}
