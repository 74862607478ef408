package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

const (
	// gcPercent is how much garbage may gather at least, relative to what lives. A review leaves a few dozen kilobytes behind, so collecting twice as often as usual costs
	// little where much lives, and keeps a replica small.
	gcPercent = 50
	// gcRoom is how much may gather at least, in bytes. Of ten megabytes that live, half is the garbage of some hundred reviews, and collecting after each of those was a third of
	// what reviews took.
	gcRoom = 16 << 20
)

// keepSmall sets the pace of the garbage collector, unless the environment does.
func keepSmall() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percentFor(read("/gc/heap/live:bytes")))
	}
}

// percentFor is the pace for so many bytes that live.
func percentFor(live uint64) int {
	return max(gcPercent, int(gcRoom*100/max(live, minLive))) //nolint:gosec // small
}

// minLive is less than what lives in any webhook that decides; before it does, the collector knows less than there will be.
const minLive = 8 << 20

// read is a figure of the runtime, in bytes.
func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// giveBack returns memory to the system after something that needed much of it once, compiling and testing policies, and adapts the pace of the collector to what lives now.
func giveBack() {
	debug.FreeOSMemory()
	keepSmall()
}

// afterwards gives memory back when work is over that left garbage behind, such as a pass over all statuses or a burst of reviews. The collector alone would leave as much of it as
// it takes to begin anew.
func afterwards(ctx context.Context) error {
	r := lull{}
	periodic.Run(ctx, lullInterval, func() {
		if r.isDue(read("/gc/heap/allocs:bytes")) {
			giveBack()
		}
	})
	return nil
}

const (
	lullInterval = 10 * time.Second
	// lullBytes is how much may be made in an interval in which nothing much is done: leases, metrics, a look at a thousand policies, a few reviews. It is what
	// the collector lets gather, so that giving back costs no more than collecting would.
	lullBytes = gcRoom
)

// lull finds out when work is over, by how many bytes were made so far.
type lull struct{ last, given uint64 }

// isDue reports whether memory is to be given back now: little was made since the last time it was asked, and since memory was given back more than
// the collector lets gather.
func (r *lull) isDue(made uint64) bool {
	isQuiet := made-r.last <= lullBytes
	r.last = made
	if !isQuiet || made-r.given < gcRoom {
		return false
	}
	r.given = made
	return true
}
