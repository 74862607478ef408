//go:build linux

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
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pipeguard/pipeguard/test/harness"
)

// limit ends a run that hangs.
const limit = 15 * time.Minute

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "see in some seconds whether everything works; the figures say nothing")
	flag.StringVar(&o.webhook, "webhook", "", "`file` of the webhook; empty builds it")
	flag.StringVar(&o.before, "before", "", "`file` of another webhook to measure beside it")
	flag.StringVar(&o.gatekeeper, "gatekeeper", "", "`file` of Gatekeeper, which needs the programs of test/tools/build api")
	flag.StringVar(&o.only, "only", "", "measure only the rows that have this `text`: plain, driver, never seen, refused")
	flag.IntVar(&o.turns, "turns", 7, "how often each server has its turn of a second, in each row")
	flag.StringVar(&o.lines, "benchmarks", "", "`file` to which each row of Pipeguard is also appended as a line of go test -bench, for benchstat")
	flag.StringVar(&o.table, "table", "", "`file` for the table, in Markdown, beside standard output")
	yes := flag.Bool("yes", false, "say yes to reviews; how this program starts the server to compare with")
	flag.Parse()
	log.SetLogger(logr.Discard()) // of controller-runtime's clients
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	var err error
	if *yes {
		err = sayYes(ctx)
	} else {
		err = o.run(ctx)
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "review:", err)
		os.Exit(1)
	}
}

type options struct {
	quick                       bool
	webhook, before, gatekeeper string
	only, table, lines          string
	turns                       int
}

// size is how long is measured.
type size struct {
	turns, warmUp int
	turn          time.Duration
}

func (o options) size() size {
	if o.quick {
		return size{turns: 1, warmUp: 20, turn: 50 * time.Millisecond}
	}
	return size{turns: o.turns, warmUp: 300, turn: time.Second}
}

func (o options) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "pgreview")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.webhook == "" {
		if o.webhook, err = harness.Build(ctx, dir, "-trimpath", "./cmd/webhook"); err != nil {
			return err
		}
	}
	out := io.Writer(os.Stdout)
	if o.table != "" {
		file, err := os.Create(filepath.Clean(o.table))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = io.MultiWriter(out, file)
	}
	servers, err := o.start(ctx, dir)
	defer func() { err = errors.Join(err, servers.stop()) }()
	if err != nil {
		return err
	}
	s := o.size()
	_, _ = fmt.Fprintf(out, "%d cores, %s, %d turns of %v for each server; medians.\n\n", runtime.NumCPU(), runtime.Version(), s.turns, s.turn)
	return o.measure(ctx, servers, s, out)
}
