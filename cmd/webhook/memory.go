package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage may gather, relative to what lives. What lives is a few megabytes of policy and copies of
// small objects, and a review leaves a few hundred kilobytes behind at most, so collecting twice as often as usual costs
// little and keeps a replica small.
const gcPercent = 50

// keepSmall sets the pace of the garbage collector, unless the environment does.
func keepSmall() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// giveBack returns memory to the system after something that needed much of it once: compiling and testing policies.
func giveBack() { debug.FreeOSMemory() }
