package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage may gather, relative to live memory. Refused calls make garbage fast and leave little, so collecting twice as
// often as usual keeps a flood of them small.
const gcPercent = 50

// keepSmall sets the pace of the garbage collector, unless the environment does.
func keepSmall() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
