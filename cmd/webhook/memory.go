package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
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
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetGCPercent(percentFor(live[0].Value.Uint64()))
	}
}

// percentFor is the pace for so many bytes that live.
func percentFor(live uint64) int {
	return max(gcPercent, int(gcRoom*100/max(live, minLive))) //nolint:gosec // small
}

// minLive is less than what lives in any webhook that decides; before it does, the collector knows less than there will be.
const minLive = 8 << 20

// giveBack returns memory to the system after something that needed much of it once, compiling and testing policies, and adapts the pace of the collector to what lives now.
func giveBack() {
	debug.FreeOSMemory()
	keepSmall()
}
