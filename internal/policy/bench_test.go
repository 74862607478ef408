package policy

import "testing"

func BenchmarkActivateDefaultPolicy(b *testing.B) {
	m := defaultPolicy(b)
	e := activated(b, m, patient)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Activate(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}
