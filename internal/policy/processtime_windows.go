package policy

import (
	"time"

	"golang.org/x/sys/windows"
)

// processTime is the processor time that this process has used. If the system does not say, it is the time by the clock.
func processTime() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		return time.Since(clock)
	}
	return ticks(kernel) + ticks(user)
}

// ticks are durations in units of 100 ns; Filetime.Nanoseconds is for dates.
func ticks(t windows.Filetime) time.Duration {
	const unit = 100 * time.Nanosecond
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * unit
}
