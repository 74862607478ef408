package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/windows"
)

// processTime is the processor time that this process has used.
var processTime = func() time.Duration {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &created, &exited, &kernel, &user); err != nil {
		panic(fmt.Sprintf("processor time of this process: %v", err)) // an evaluation that panics is a refusal
	}
	return ticks(kernel) + ticks(user)
}

// ticks is a length of time in units of 100 ns; Filetime.Nanoseconds is for dates.
func ticks(t windows.Filetime) time.Duration {
	const unit, half = 100 * time.Nanosecond, 32
	return time.Duration(int64(t.HighDateTime)<<half|int64(t.LowDateTime)) * unit
}
