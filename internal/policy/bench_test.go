package policy

import (
	"runtime"
	"strconv"
	"testing"
)

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

// BenchmarkInputComparedWithItself reports the stack that a comparison takes of the largest input that is made of the smallest parts.
func BenchmarkInputComparedWithItself(b *testing.B) {
	keys := map[string]any{}
	for i := range 110_000 {
		keys[strconv.FormatInt(int64(i), 16)] = 1
	}
	input := value(b, map[string]any{"a": keys})
	e := activated(b, deciding(`{"allowed": count([1 | input.a = input.a]) == 1, "findings": []}`), patient)
	var most uint64
	for b.Loop() {
		done := make(chan uint64)
		go func() { // on a stack of its own
			var m runtime.MemStats
			d, err := e.Decide(b.Context(), input)
			runtime.ReadMemStats(&m)
			if err != nil || !d.Allowed {
				m.StackInuse = 0
			}
			done <- m.StackInuse
		}()
		n := <-done
		if n == 0 {
			b.Fatal("the input was not compared")
		}
		most = max(most, n)
	}
	b.ReportMetric(float64(most)/(1<<20), "MiB-stack")
}
