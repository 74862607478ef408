package main

import (
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/process"
)

// resident is what a process holds, for a table.
func resident(pid int) string {
	m, err := process.MemoryOf(pid)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%.1f MiB", float64(m.Resident)/(1<<20))
}

// usedBy is the processor time of a process so far.
func usedBy(pid int) (time.Duration, error) { return process.CPU(pid) }
