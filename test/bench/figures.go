//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/process"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// figures are everything that was measured. Durations are in nanoseconds, memory in bytes.
type figures struct {
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took"`
	Size  string        `json:"size"`
	Cores int           `json:"cores"`
	// Load is the load of the last minute before the first part and after each.
	Load []string `json:"load"`
	// Busy is the share of all cores that was in use while nothing was asked, at the beginning and at the end.
	Busy  []float64  `json:"busy"`
	Parts []partTime `json:"parts"`

	Creates   []*created   `json:"creates"`
	Loads     []load       `json:"loads"`
	IdleCPU   float64      `json:"idle_cpu"` // of one core
	Memory    []remembered `json:"memory"`
	Scan      scan         `json:"scan"`
	Takeovers []takeover   `json:"takeovers"`
	Many      many         `json:"many"`
}

type partTime struct {
	Part string        `json:"part"`
	Took time.Duration `json:"took"`
}

type remembered struct {
	When string `json:"when"`
	process.Memory
}

// remember reads what a replica holds now and has held since its peak was reset.
func (f *figures) remember(when string, r *cluster.Replica) error {
	m, err := process.MemoryOf(r.PID())
	if err == nil {
		f.Memory = append(f.Memory, remembered{when, m})
	}
	return err
}

// lookAround measures for a while how busy the machine is while nothing is asked.
func (f *figures) lookAround(ctx context.Context, d time.Duration) error {
	share, err := busy(ctx, d)
	if err == nil {
		f.Busy = append(f.Busy, share)
	}
	return err
}

// write stores everything, and prints the tables as well.
func (f *figures) write(table, raw string, out io.Writer) error {
	text := []byte(f.markdown())
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the figures: %w", err)
	}
	_, err = out.Write(text)
	return errors.Join(err, writeFile(table, text), writeFile(raw, append(data, '\n')))
}

func writeFile(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { // #nosec G301 -- results of a build
		return fmt.Errorf("write figures: %w", err)
	}
	if err := os.WriteFile(name, data, 0o644); err != nil { // #nosec G306 -- nothing in it is secret
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
