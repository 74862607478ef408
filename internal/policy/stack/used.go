//go:build amd64 || arm64

package stack

// Used returns how many bytes of its stack the calling goroutine uses: from the upper end, which is the second word of what the runtime keeps of a goroutine
// (runtime/runtime2.go: "offset known to runtime/cgo"), to the caller. A test holds it against frames of a known size.
func Used() int64
