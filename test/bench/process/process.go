//go:build linux

// Package process reads what the kernel says of a process's use of processor and memory.
package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is what a process has used so far, by its CPU clock, which counts nanoseconds. See clock_getcpuclockid(3), from which the clock's number is.
func CPU(pid int) (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &t); err != nil { //nolint:gosec // numbers of processes are small
		return 0, fmt.Errorf("read the clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}

// Memory is what a process holds, in bytes.
type Memory struct {
	// Resident is VmRSS.
	Resident int64 `json:"resident"`
	// Most is VmHWM: the most that was resident since ResetMost.
	Most int64 `json:"most"`
}

// MemoryOf is what a process holds now.
func MemoryOf(pid int) (m Memory, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, fmt.Errorf("read the memory of a process: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case name != "VmRSS" && name != "VmHWM":
		case err != nil:
			return m, fmt.Errorf("read the memory of a process: %w", err)
		case name == "VmRSS":
			m.Resident = n << 10
		default:
			m.Most = n << 10
		}
	}
	return m, nil
}

// ResetMost makes VmHWM begin again. See proc_pid_clear_refs(5).
func ResetMost(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200); err != nil {
		return fmt.Errorf("reset the peak of a process's memory: %w", err)
	}
	return nil
}
