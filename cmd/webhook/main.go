package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/garbage"
	"github.com/pipeguard/pipeguard/internal/interrupt"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Exit codes.
const (
	exitFailure = 1 // it could not start, or stopped for a fault
	exitUsage   = 2 // the command line is wrong
)

func main() {
	policy.SealProcess()
	garbage.Limit()
	ctx, stop := interrupt.Context(context.Background())
	code := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cmd := newCommand(func(o options) error { return serve(ctx, o, stdout, stderr) })
	cmd.SetArgs(args)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, "webhook:", strings.Join(inert.Faults(err), "\n")) //nolint:errcheck // there is nowhere else to say it
	if _, ok := errors.AsType[*failure](err); ok {
		return exitFailure
	}
	return exitUsage
}

// failure is an error that is not the command line's.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// serve runs the webhook until ctx is done.
func serve(ctx context.Context, o options, stdout, stderr io.Writer) error {
	log := newLog(o.level, stderr)
	defer log.Sync() //nolint:errcheck // standard error cannot be synced everywhere
	ctrllog.SetLogger(zapr.NewLogger(log))
	restore := zap.RedirectStdLog(log)
	defer restore()

	s, err := newServer(ctx, o, stdout, log)
	if err != nil {
		return &failure{err}
	}
	if err := s.run(ctx); err != nil {
		return &failure{err}
	}
	return nil
}
