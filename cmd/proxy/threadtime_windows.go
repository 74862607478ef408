package main

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var getThreadTimes = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetThreadTimes")

// threadTime returns the processor time that the calling thread has used so far, for any thread to read until release. If the system does not say, it is the
// time by the clock, which ends an evaluation earlier.
var threadTime = func() (used func() time.Duration, release func()) {
	var thread windows.Handle // the pseudo-handle of CurrentThread means another thread to each caller
	self := windows.CurrentProcess()
	if err := windows.DuplicateHandle(self, windows.CurrentThread(), self, &thread, windows.THREAD_QUERY_LIMITED_INFORMATION, false, 0); err != nil {
		return byClock, func() {}
	}
	return func() time.Duration {
		var created, exited, kernel, user windows.Filetime
		// #nosec G103 -- the call fills these
		ok, _, _ := getThreadTimes.Call(uintptr(thread), uintptr(unsafe.Pointer(&created)), uintptr(unsafe.Pointer(&exited)), uintptr(unsafe.Pointer(&kernel)), uintptr(unsafe.Pointer(&user)))
		if ok == 0 {
			return byClock()
		}
		return ticks(kernel) + ticks(user)
	}, func() { _ = windows.CloseHandle(thread) }
}

var started = time.Now()

func byClock() time.Duration { return time.Since(started) }

// ticks is a length of time in units of 100 ns; Filetime.Nanoseconds is for dates.
func ticks(t windows.Filetime) time.Duration {
	const unit, half = 100 * time.Nanosecond, 32
	return time.Duration(int64(t.HighDateTime)<<half|int64(t.LowDateTime)) * unit
}
