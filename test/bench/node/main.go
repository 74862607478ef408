package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/program"
)

// limit ends a run that hangs.
const limit = 15 * time.Minute

func main() {
	quick := flag.Bool("quick", false, "see in some seconds whether everything works; the figures say nothing")
	exe := flag.String("proxy", "", "`file` of the proxy; empty builds it")
	only := flag.String("only", "", "measure only what has this `text` in its name: records, call, start, memory")
	turns := flag.Int("turns", 12, "how often each server has its turn of half a second, in each row")
	lines := flag.String("benchmarks", "", "`file` to which each row is also appended as a line of go test -bench, for benchstat")
	table := flag.String("table", "", "`file` for the tables, in Markdown, beside standard output")
	bare := flag.String("bare", "", "serve the filesystem group without any guard on sockets in this `directory`; how this program starts the server to compare with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	var err error
	if *bare != "" {
		err = serveBare(ctx, *bare)
	} else {
		err = measure(ctx, *exe, *table, &stage{only: *only, turn: 500 * time.Millisecond, turns: *turns, starts: 11, connections: 500, lines: *lines}, *quick)
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, exe, table string, st *stage, quick bool) (err error) {
	dir, err := os.MkdirTemp("", "pgbench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // Wine cannot; what is left lies among temporary files
	if exe == "" {
		if exe, err = program.Build(ctx, dir); err != nil {
			return err
		}
	}
	out := io.Writer(os.Stdout)
	if table != "" {
		file, err := os.Create(filepath.Clean(table))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = io.MultiWriter(out, file)
	}
	st.dir, st.exe = dir, exe
	if quick {
		st.turn, st.turns, st.starts = 50*time.Millisecond, 2, 2
	}
	_, _ = fmt.Fprintf(out, "%s/%s, %d cores, %s, %d turns of %v for each server\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), st.turns, st.turn)
	if err := st.compare(ctx, out); err != nil {
		return err
	}
	if strings.Contains("start", st.only) {
		if err := st.start(ctx, out); err != nil {
			return err
		}
	}
	if strings.Contains("memory", st.only) {
		return st.memory(ctx, out)
	}
	return nil
}
