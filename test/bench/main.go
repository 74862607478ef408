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
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pipeguard/pipeguard/test/harness"
)

// limit ends a run that hangs. A whole run takes six minutes where nothing else runs.
const limit = 20 * time.Minute

func main() {
	quick := flag.Bool("quick", false, "see in about a minute whether everything works; the figures say nothing")
	only := flag.String("only", "", "measure only the parts that have this `text` in their names: memory, creates, reviews, pods that exist, way, stored")
	table := flag.String("table", filepath.Join(harness.Root(), "build", "figures.md"), "`file` for the tables, in Markdown")
	raw := flag.String("json", filepath.Join(harness.Root(), "build", "figures.json"), "`file` for everything that was measured")
	flag.Parse()
	log.SetLogger(logr.Discard()) // of controller-runtime's clients
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, limit)
	size := whole
	if *quick {
		size = small
	}
	err := run(ctx, size, *only, *table, *raw, os.Stdout, os.Stderr)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures, and writes what it has also if a later part fails.
func run(ctx context.Context, size size, only string, table, raw string, out, progress io.Writer) (err error) {
	f := &figures{Began: time.Now().UTC(), Size: size.name, Cores: cores(), Load: []string{loadAverage()}}
	st, err := setUp(ctx, size, progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.clear()) }()
	for _, part := range []struct {
		name string
		do   func(context.Context, *stage, *figures) error
	}{
		{"memory before anything is asked", idle},
		{"pods through the API server: creates", creates},
		{"reviews at a steady rate", loads},
		{"pods that exist", scanned},
		{"a policy on its way to two replicas", applied},
		{"policies that are stored", stored},
	} {
		if !strings.Contains(part.name, only) {
			continue
		}
		began := time.Now()
		_, _ = fmt.Fprintf(progress, "%s %s\n", began.UTC().Format(time.TimeOnly), part.name)
		if err = part.do(ctx, st, f); err != nil {
			err = fmt.Errorf("%s: %w", part.name, err)
			break
		}
		f.Parts = append(f.Parts, partTime{part.name, time.Since(began)})
		f.Load = append(f.Load, loadAverage())
	}
	f.Took = time.Since(f.Began)
	return errors.Join(err, f.write(table, raw, out))
}
