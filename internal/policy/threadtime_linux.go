package policy

import (
	"time"

	"golang.org/x/sys/unix"
)

// threadTime returns the processor time that the calling thread has used so far, for any thread to read until release. If the system does not say, it is
// the time by the clock.
func threadTime() (used func() time.Duration, release func()) {
	const perThread, scheduled = 4, 2                      // CPUCLOCK_PERTHREAD_MASK and CPUCLOCK_SCHED of the kernel's posix-timers.h
	id := int32(^unix.Gettid()<<3 | perThread | scheduled) // #nosec G115 -- a thread's number has 22 bits
	return func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(id, &t); err != nil {
			return time.Since(clock)
		}
		return time.Duration(t.Nano())
	}, func() {}
}
