package requestpolicy

import (
	"fmt"
	"testing"

	"github.com/pipeguard/pipeguard/internal/nodepolicy"
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

// BenchmarkInput makes what a policy is shown, with the caller's part made for each call and once for its connection.
func BenchmarkInput(b *testing.B) {
	for _, isKept := range []bool{false, true} {
		b.Run(fmt.Sprintf("caller-kept=%v", isKept), func(b *testing.B) {
			call, s := mkdir(), driver()
			if isKept {
				s.Shown = Show(s.Caller)
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

// BenchmarkDecide is a whole question: the input made and the built-in policy asked. How it grows with what policies hold is
// measured beside them, and who is named is found by the access list before.
func BenchmarkDecide(b *testing.B) {
	e := activated(b, policy.Options{BaseTested: true})
	for _, c := range []struct {
		name    string
		call    *apiserver.Call
		isNamed bool
		rule    string
	}{
		{"ordinary", mkdir(), false, ""},
		{"guarded-named", format(b), true, ""},
		{"guarded-not-named", format(b), false, "PN004"},
	} {
		s := driver()
		s.Named, s.Shown = c.isNamed, Show(s.Caller)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := e.Decide(b.Context(), c.call, s); d.Rule != c.rule || d.Allowed() != (c.rule == "") {
					b.Fatalf("%+v", d)
				}
			}
		})
	}
}

// BenchmarkActivate is what the built-in policy costs the start of a proxy, and what it would with its own tests.
func BenchmarkActivate(b *testing.B) {
	for _, isTested := range []bool{true, false} {
		b.Run(fmt.Sprintf("tests=%v", !isTested), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				activated(b, policy.Options{BaseTested: isTested})
			}
		})
	}
}

func activated(b *testing.B, o policy.Options) *Evaluator {
	b.Helper()
	m, err := nodepolicy.Modules(nil)
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
