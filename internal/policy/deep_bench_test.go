package policy

import (
	"runtime/metrics"
	"sync"
	"testing"
)

// deepAtOnce asks for so many decisions at one time that would take all of the stack, and returns how much there was in MiB meanwhile, and when they had
// ended on goroutines that go on.
func deepAtOnce(tb testing.TB, e *Engine, callers int) (most, left float64) {
	tb.Helper()
	input := value(tb, map[string]any{"a": "x"})
	stacks := []metrics.Sample{{Name: "/memory/classes/heap/stacks:bytes"}}
	read := func() float64 {
		metrics.Read(stacks)
		return float64(stacks[0].Value.Uint64()) / (1 << 20)
	}
	var asking, going sync.WaitGroup
	leave, done := make(chan struct{}), make(chan struct{})
	for range callers {
		asking.Add(1)
		going.Go(func() {
			_, err := e.Decide(tb.Context(), input)
			asking.Done()
			if reason := reasonOf(err); reason != ReasonMemory && reason != ReasonOverload {
				tb.Error(err)
			}
			<-leave
		})
	}
	go func() {
		asking.Wait()
		close(done)
	}()
	for isDone := false; !isDone; {
		select {
		case <-done:
			isDone = true
		default:
		}
		most = max(most, read())
	}
	left = read()
	close(leave)
	going.Wait()
	return most, left
}

func deepEngine(tb testing.TB) *Engine {
	tb.Helper()
	return activated(tb, deciding(`{"allowed": count([1 | long]) == 1, "findings": []}`).with(longWay(leaves["a comparison"])), patient)
}

// The goroutine of a connection kept the stack of the deepest decision that it had asked for: 64 of them had 1.8 GiB.
func TestACallerDoesNotKeepTheStackOfItsDecision(t *testing.T) {
	WithoutRaceDetector(t)
	if _, left := deepAtOnce(t, deepEngine(t), 64); left > 256 {
		t.Errorf("%.0f MiB of stacks are left", left)
	}
}

func BenchmarkDeepDecisionsAtOnce(b *testing.B) {
	e := deepEngine(b)
	most, left := 0.0, 0.0
	for b.Loop() {
		m, l := deepAtOnce(b, e, 64)
		most, left = max(most, m), max(left, l)
	}
	b.ReportMetric(most, "MiB-stack")
	b.ReportMetric(left, "MiB-stack-left")
}
