package request

import (
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
)

func BenchmarkInput(b *testing.B) {
	call, s := mkdir(), driver()
	s.Caller = NewCaller(s.Peer)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Input(call, s); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDecide is a whole question: the input made and the built-in policy asked. How that grows with what policies hold is
// measured beside them.
func BenchmarkDecide(b *testing.B) {
	e := evaluator(b, policy.Options{}, nil)
	call, s := mkdir(), driver()
	s.Caller = NewCaller(s.Peer)
	b.ReportAllocs()
	for b.Loop() {
		if d := e.Decide(b.Context(), call, s); !d.Allowed() {
			b.Fatal(d)
		}
	}
}
