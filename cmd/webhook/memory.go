package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// giveBack returns memory to the system after something that needed much of it once: compiling and testing policies.
func giveBack() { debug.FreeOSMemory() }

// made is how much memory was allocated so far, in bytes.
func made() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterwards gives memory back when work is over that left garbage behind, such as a pass over all statuses or a burst of reviews. The collector alone would leave as much of it as
// it takes to begin anew.
func afterwards(ctx context.Context) error {
	r := lull{}
	periodic.Run(ctx, lullInterval, func() {
		if r.isDue(made()) {
			giveBack()
		}
	})
	return nil
}

const (
	lullInterval = 10 * time.Second
	// lullBytes is how much may be made in an interval in which nothing much is done: leases, metrics, a look at a thousand policies, a few reviews. It is about what
	// the collector lets gather, so that giving back costs no more than collecting would.
	lullBytes = 16 << 20
)

// lull finds out when work is over, by how many bytes were made so far.
type lull struct{ last, given uint64 }

// isDue reports whether memory is to be given back now: little was made since the last time it was asked, and since memory was given back enough to be
// worth it.
func (r *lull) isDue(made uint64) bool {
	isQuiet := made-r.last <= lullBytes
	r.last = made
	if !isQuiet || made-r.given < lullBytes {
		return false
	}
	r.given = made
	return true
}
