package stack_test

import (
	"runtime"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy/stack"
)

// deep calls itself so often, with a frame of a KiB and more, and returns what the innermost call uses.
//
//go:noinline
func deep(n int, above *[1 << 10]byte) int64 {
	var frame [1 << 10]byte
	frame[n%len(frame)] = above[0]
	if n == 0 {
		runtime.Gosched() // where a stack may be moved
		return stack.Used()
	}
	used := deep(n-1, &frame)
	above[1] = frame[2]
	return used
}

func TestTheStackIsMeasured(t *testing.T) {
	done := make(chan [3]int64)
	go func() {
		var top [1 << 10]byte
		shallow, deeper, again := deep(0, &top), deep(10_000, &top), deep(0, &top)
		done <- [3]int64{shallow, deeper, again}
	}()
	used := <-done
	if used[0] < 1<<10 || used[0] > 64<<10 || used[2] != used[0] {
		t.Errorf("a goroutine that has just begun uses %d bytes, and then %d", used[0], used[2])
	}
	if n := (used[1] - used[0]) / 10_000; n < 1<<10 || n > 2<<10 {
		t.Errorf("10,000 frames of 1 KiB take %d bytes each", n)
	}
}

func BenchmarkUsed(b *testing.B) {
	for b.Loop() {
		stack.Used()
	}
}
