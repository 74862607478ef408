// Package garbage sets how much garbage may gather in a program that serves, before it is collected.
package garbage

import (
	"os"
	"runtime/debug"
)

// percent is how much may gather, relative to what lives. Refused requests make garbage fast and leave little, so collecting twice as often as usual keeps a flood of
// them small.
const percent = 50

// ballast counts as live, and takes no memory, since nothing is ever written to it. Without it the few megabytes that live would allow as few of garbage, and a busy program would
// spend a fifth of its time and more on collecting them.
var ballast []byte

const ballastBytes = 16 << 20

// Limit sets the pace of the garbage collector, unless the environment does by GOGC: 8 MiB and half of what lives may gather. It is called first, when all memory is
// fresh from the system.
func Limit() {
	if os.Getenv("GOGC") == "" {
		ballast = make([]byte, ballastBytes)
		debug.SetGCPercent(percent)
	}
}
