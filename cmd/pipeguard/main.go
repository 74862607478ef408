package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/interrupt"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// grace is how long a command may take to end after the first signal. A command that is blocked in opening or reading a FIFO
// does not notice the signal.
const grace = 2 * time.Second

func main() {
	policy.SealProcess()
	ctx, stop := interrupt.Context(context.Background())
	context.AfterFunc(ctx, func() {
		time.Sleep(grace)
		_, _ = fmt.Fprintf(os.Stderr, "pipeguard: interrupted, and not done %s later\n", grace)
		os.Exit(cli.ExitInterrupted)
	})
	root := NewRoot()
	if cli.IsPlugin(os.Args[0], root.Name()) {
		cli.AsPlugin(root)
	}
	code := cli.Run(ctx, root, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
