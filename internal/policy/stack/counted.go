//go:build !amd64 && !arm64

package stack

import (
	"math"
	"runtime"
)

const (
	// frameBytes is what a frame takes at least where there are many.
	frameBytes = 512
	// maxFrames is how many are counted.
	maxFrames = 1 << 16
)

// Used bounds how many bytes of its stack the calling goroutine uses, by the number of its frames. It takes time in proportion to it.
func Used() int64 {
	callers := make([]uintptr, maxFrames)
	n := runtime.Callers(0, callers)
	if n == maxFrames { // and maybe many more
		return math.MaxInt64
	}
	return frameBytes * int64(n)
}
