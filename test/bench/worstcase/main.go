//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pipeguard/pipeguard/test/bench/program"
)

// limit ends a run that hangs.
const limit = 30 * time.Minute

func main() {
	quick := flag.Bool("quick", false, "see in a minute whether everything works; the figures say little")
	exe := flag.String("proxy", "", "`file` of the proxy; empty builds it")
	table := flag.String("table", "", "`file` for the table, in Markdown, beside standard output")
	only := flag.String("only", "", "measure only the attacks that have this `text` in their names")
	hostile := flag.String("hostile", "", "be a process of the hostile pod that does this `attack`; how this program starts them")
	pipes := flag.String("pipes", "", "`directory` of the pipes that a hostile process attacks")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	var err error
	if *hostile != "" {
		err = be(ctx, *hostile, *pipes)
	} else {
		err = measure(ctx, *exe, *table, *only, *quick)
	}
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worstcase:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, exe, table, only string, quick bool) (err error) {
	dir, err := os.MkdirTemp("", "pgworst")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if exe == "" {
		if exe, err = program.Build(ctx, dir); err != nil {
			return err
		}
	}
	st := &stage{dir: dir, exe: exe, calls: 10_000, fresh: 200, least: time.Minute}
	if quick {
		st.calls, st.fresh, st.least = 500, 10, 6*time.Second
	}
	results, err := st.all(ctx, only, os.Stderr)
	if err != nil {
		return err
	}
	text := markdown(st, results)
	fmt.Print(text)
	if table == "" {
		return nil
	}
	return write(table, text)
}
