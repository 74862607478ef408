// Command proxy serves the CSI Proxy APIs on the named pipes of a node, each call behind an access list and an audit record.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/version"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 after an ordered stop, 1 after a fault, 2 for a command line that is wrong.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "proxy:", err)
		return 2
	case f.version:
		_, _ = fmt.Fprintln(stdout, version.String("proxy"))
		return 0
	}
	log, closeLog, err := newLog(f, stderr)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err)
		return 1
	}
	defer closeLog()
	f.warn(log)
	err = winsvc.Run(ctx, winsvc.Options{Service: f.windowsService}, func(ctx context.Context) error {
		return serve(ctx, f, log, stdout)
	})
	if err != nil {
		log.Error("stopped by a fault", zap.Error(err))
		return 1
	}
	log.Info("stopped")
	return 0
}
