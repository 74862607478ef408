//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat, 1/100 s on every platform of Linux that Go runs on.
const tick = 10 * time.Millisecond

// cpuOf is what a process has used so far. See proc_pid_stat(5).
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the times of a process: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name before it may contain spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("read the times of a process: %q", text)
	}
	var total time.Duration
	for _, field := range fields[11:13] { // utime and stime
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the times of a process: %w", err)
		}
		total += time.Duration(n) * tick
	}
	return total, nil
}

// memory is what a process holds, in bytes.
type memory struct {
	// Resident is VmRSS.
	Resident int64 `json:"resident"`
	// Most is VmHWM: the most that was resident since resetMost.
	Most int64 `json:"most"`
}

func memoryOf(pid int) (m memory, err error) {
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

// resetMost makes VmHWM begin again. See proc_pid_clear_refs(5).
func resetMost(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o200); err != nil { // #nosec G703 -- a process that this one has started
		return fmt.Errorf("reset the peak of a process's memory: %w", err)
	}
	return nil
}

// busy is the share of all cores that is in use for a while, by whatever runs. See proc_stat(5).
func busy(ctx context.Context, d time.Duration) (float64, error) {
	total, idle, err := cpuTimes()
	if err != nil {
		return 0, err
	}
	if err := pause(ctx, d); err != nil {
		return 0, err
	}
	totalAfter, idleAfter, err := cpuTimes()
	if err != nil || totalAfter == total {
		return 0, err
	}
	return 1 - (idleAfter-idle)/(totalAfter-total), nil
}

func cpuTimes() (total, idle float64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read the times of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("read the times of the machine: %q", line)
	}
	for i, field := range fields[1:9] { // user, nice, system, idle, iowait, irq, softirq, steal
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read the times of the machine: %w", err)
		}
		total += n
		if i == 3 || i == 4 {
			idle += n
		}
	}
	return total, idle, nil
}

func cores() int { return runtime.NumCPU() }

// loadAverage is the load of the last minute, "" if there is no /proc.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
