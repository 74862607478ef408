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
