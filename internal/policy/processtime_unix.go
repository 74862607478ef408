//go:build unix

package policy

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time that this process has used. If the system does not say, it is the time by the clock.
func processTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return time.Since(clock)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
