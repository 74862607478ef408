package main

import (
	"fmt"
	"os"
	"strings"
)

// resident is VmRSS of a process.
func resident(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			var kib int
			if _, err := fmt.Sscanf(value, "%d kB", &kib); err != nil {
				return err.Error()
			}
			return fmt.Sprintf("%.1f MiB", float64(kib)/1024)
		}
	}
	return "not told"
}
