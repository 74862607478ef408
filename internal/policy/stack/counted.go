//go:build !amd64 && !arm64

package stack

import "runtime"

const (
	// frameBytes is what a frame takes at least where there are many.
	frameBytes = 512
	// maxFrames is how many are counted.
	maxFrames = 1 << 16
)

// Used bounds how many bytes of its stack the calling goroutine uses, by the number of its frames. It takes time in proportion to it.
func Used() int64 {
	callers := make([]uintptr, maxFrames)
	return frameBytes * int64(runtime.Callers(0, callers))
}
