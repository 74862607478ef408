//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/benchfmt"
	"github.com/pipeguard/pipeguard/test/harness"
)

func main() {
	var o options
	flag.StringVar(&o.log, "log", "", "`directory` in which TestReadingALongLogTakesBoundedMemory has left a log")
	flag.StringVar(&o.exe, "pipeguard", "", "`file` of pipeguard; empty builds it")
	flag.StringVar(&o.before, "before", "", "`file` of another version to measure beside it")
	flag.IntVar(&o.turns, "turns", 3, "how often each version runs each command")
	flag.StringVar(&o.only, "only", "", "measure only the commands that have this `text`")
	flag.StringVar(&o.lines, "benchmarks", "", "`file` to which each row is also appended as a line of go test -bench, for benchstat")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "reading:", err)
		os.Exit(1)
	}
}

type options struct {
	log, exe, before, only, lines string
	turns                         int
}

// command is what is measured: its arguments, and a name without the machine's paths.
type command struct {
	name string
	args []string
}

func (o options) commands(scratch string) (all []command) {
	log, key, outside := filepath.Join(o.log, "log"), filepath.Join(o.log, "key.pub"), filepath.Join(o.log, "outside")
	for _, c := range []command{
		{"search by id", []string{"search", log, "--id", "R7", "-o", "jsonl"}},
		{"search by id, verified", []string{"search", log, "--id", "R7", "-o", "jsonl", "--keys", key, "--checkpoint", outside}},
		{"search by number", []string{"search", log, "--seq", "1000-1003", "-o", "jsonl"}},
		{"search by time", []string{"search", log, "--until", "2000-01-01", "-o", "jsonl"}},
		{"search by path, count", []string{"search", log, "--path", `C:\var\lib\kubelet`, "--count"}},
		{"tail -n 5", []string{"tail", log, "-n", "5", "-o", "jsonl"}},
		{"stats by caller and method", []string{"stats", log, "--by", "caller,method"}},
		{"stats by id", []string{"stats", log, "--by", "id"}},
		{"hunt", []string{"hunt", log}},
		{"report", []string{"report", log, "-o", filepath.Join(scratch, "report.html"), "--overwrite", "--keys", key, "--checkpoint", outside}},
		{"check", []string{"check", log}},
	} {
		if strings.Contains(c.name, o.only) {
			all = append(all, c)
		}
	}
	return all
}

// run is what one command took of the machine.
type run struct {
	took, cpu time.Duration
	most      int64 // resident, in bytes
	printed   [sha256.Size]byte
}

func execute(ctx context.Context, exe string, c command) (r run, err error) {
	cmd := exec.CommandContext(ctx, exe, append([]string{"audit"}, c.args...)...) //nolint:gosec // our own programs
	out := sha256.New()
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = out, &said
	began := time.Now()
	err = cmd.Run()
	r.took = time.Since(began)
	if err != nil {
		return r, fmt.Errorf("%s: %w: %.500s", c.name, err, said.String())
	}
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.most = used.Maxrss << 10
	}
	copy(r.printed[:], out.Sum(nil))
	return r, nil
}

func (o options) run(ctx context.Context) (err error) {
	if _, err := os.Stat(filepath.Join(o.log, "outside")); err != nil {
		return fmt.Errorf("-log names no directory with a log, see \"go doc ./test/bench/reading\": %w", err)
	}
	dir, err := os.MkdirTemp("", "pgreading")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.exe == "" {
		if o.exe, err = harness.Build(ctx, dir, "-trimpath", "./cmd/pipeguard"); err != nil {
			return err
		}
	}
	versions := []string{o.exe}
	if o.before != "" {
		versions = append(versions, o.before)
	}
	fmt.Printf("%d cores, %s, medians of %d runs, in turns\n\n| command | time | before | CPU | before | of it | most memory | before |\n|---|---|---|---|---|---|---|---|\n", runtime.NumCPU(), runtime.Version(), o.turns)
	for _, c := range o.commands(dir) {
		found := make([][]run, len(versions))
		for range o.turns {
			for i, exe := range versions {
				r, err := execute(ctx, exe, c)
				if err != nil {
					return err
				}
				found[i] = append(found[i], r)
				if r.printed != found[0][0].printed {
					return fmt.Errorf("%s prints something else with %s than with %s before", c.name, exe, versions[0])
				}
			}
		}
		if err := o.row(c, found); err != nil {
			return err
		}
	}
	return nil
}

func (o options) row(c command, found [][]run) error {
	now := medianOf(found[0])
	before, ratio := run{}, ""
	cells := [3]string{}
	if len(found) > 1 {
		before = medianOf(found[1])
		ratio = fmt.Sprintf("%.2f", now.cpu.Seconds()/before.cpu.Seconds())
		cells = [3]string{seconds(before.took), seconds(before.cpu), mebibytes(before.most)}
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.name, seconds(now.took), cells[0], seconds(now.cpu), cells[1], ratio, mebibytes(now.most), cells[2])
	return benchfmt.Append(o.lines, "test/bench/reading", []string{"Reading", c.name}, len(found[0]),
		benchfmt.Figure{Value: float64(now.took), Unit: "ns/op"}, benchfmt.Figure{Value: float64(now.cpu), Unit: "cpu-ns/op"}, benchfmt.Figure{Value: float64(now.most), Unit: "most-B"})
}

// medianOf takes the median of each figure by itself.
func medianOf(runs []run) (m run) {
	of := func(figure func(run) int64) int64 {
		all := make([]int64, len(runs))
		for i, r := range runs {
			all[i] = figure(r)
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	m.took = time.Duration(of(func(r run) int64 { return int64(r.took) }))
	m.cpu = time.Duration(of(func(r run) int64 { return int64(r.cpu) }))
	m.most = of(func(r run) int64 { return r.most })
	return m
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func mebibytes(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
