package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage may gather, relative to live memory. Refused calls make garbage fast and leave little, so collecting twice as
// often as usual keeps a flood of them small.
const gcPercent = 50

// ballast counts as live memory, and takes none, since nothing is ever written to it. Without it the few megabytes that live would allow two
// or three of garbage, and a busy proxy would spend a fifth of its time on collecting them.
var ballast []byte

const ballastBytes = 16 << 20

// keepSmall sets the pace of the garbage collector, unless the environment does.
func keepSmall() {
	if os.Getenv("GOGC") == "" {
		ballast = make([]byte, ballastBytes)
		debug.SetGCPercent(gcPercent)
	}
}
