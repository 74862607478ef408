//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/process"
	"github.com/pipeguard/pipeguard/test/bench/program"
)

// attacked is the pipe that driver and hostile pod have in common.
const attacked = "csi-proxy-filesystem-v1"

// hostiles is how many processes the hostile pod has.
const hostiles = 8

// stage is where attacks are measured.
type stage struct {
	dir, exe string
	calls    int           // of the driver on a connection that it keeps
	fresh    int           // each on a connection of its own
	least    time.Duration // how long an attack goes on
}

// result is what was measured of one attack.
type result struct {
	name          string
	memory        int64 // bytes resident above idle, at the most
	processor     float64
	bytes         int     // of records of others than the driver, in the second half
	records       float64 // the same for an hour; of an attack of seconds it says little, since budgets are for minutes and hours
	failed, calls int
	first         error
	alone, beside latencies
	stop, without time.Duration
}

// all measures each attack with a proxy of its own.
func (s *stage) all(ctx context.Context, only string, progress io.Writer) ([]result, error) {
	without, err := s.stopAlone(ctx)
	if err != nil {
		return nil, fmt.Errorf("a stop without an attack: %w", err)
	}
	var results []result
	for _, a := range attacks {
		if !strings.Contains(a.name, only) {
			continue
		}
		_, _ = fmt.Fprintln(progress, a.name)
		r, err := s.one(ctx, a.name)
		if err != nil {
			return results, fmt.Errorf("%s: %w", a.name, err)
		}
		r.without = without
		results = append(results, r)
	}
	return results, nil
}

// running is a proxy under test.
type running struct {
	*program.Server
	sockets, audit string
}

// start starts the proxy with a rule for this program.
func (s *stage) start(ctx context.Context) (*running, error) {
	dir, err := os.MkdirTemp(s.dir, "p")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config := "acl:\n  limits: {callsPerSecond: 100000}\n  rules:\n" +
		"  - {name: driver, pipes: [\"*\"], operations: [\"*\"], callers: [{exe: " + strconv.Quote(self) + "}]}\n"
	r := &running{sockets: filepath.Join(dir, "s"), audit: filepath.Join(dir, "audit")}
	r.Server, err = program.Proxy(ctx, s.exe, dir, config, attacked, "--audit-log", r.audit)
	return r, err
}

// stop is how long the proxy takes to end when it is told to.
func (r *running) stop() (time.Duration, error) {
	began := time.Now()
	err := r.Stop(time.Minute)
	return time.Since(began), err
}

func (s *stage) stopAlone(ctx context.Context) (time.Duration, error) {
	r, err := s.start(ctx)
	if err != nil {
		return 0, err
	}
	if d := drive(ctx, r, s.calls/10, 0, 0); d.first != nil {
		r.Kill()
		return 0, d.first
	}
	return r.stop()
}

// one measures one attack: the driver alone, the driver beside the attack, and a stop while it goes on.
func (s *stage) one(ctx context.Context, name string) (out result, err error) {
	r, err := s.start(ctx)
	if err != nil {
		return out, err
	}
	alone := drive(ctx, r, s.calls/2, s.fresh/2, 0)
	if alone.first != nil {
		r.Kill()
		return out, fmt.Errorf("the driver alone: %w", alone.first)
	}
	defer r.Kill()
	pid := r.PID()
	idle, err := process.MemoryOf(pid)
	if err == nil {
		err = process.ResetMost(pid)
	}
	if err != nil {
		return out, err
	}
	pod, err := s.attack(name, r)
	defer pod.end()
	if err != nil {
		return out, err
	}
	before, _ := process.CPU(pid) // an error shows in the next
	began := time.Now()
	beside := drive(ctx, r, s.calls, s.fresh, s.least)
	took := time.Since(began)
	after, cpuErr := process.CPU(pid)
	most, memoryErr := process.MemoryOf(pid)
	bytes, recordErr := refusals(r.audit, began.Add(took/2), began.Add(took))
	out = result{
		name: name, memory: most.Most - idle.Resident, processor: (after - before).Seconds() / took.Seconds(),
		bytes: bytes, records: float64(bytes) / (took.Hours() / 2), failed: beside.failed, calls: beside.made, first: beside.first,
		alone: alone.latencies, beside: beside.latencies,
	}
	out.stop, err = r.stop()
	return out, errors.Join(err, cpuErr, memoryErr, recordErr)
}
