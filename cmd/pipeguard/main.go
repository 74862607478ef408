package main

import (
	"context"
	"fmt"
	"os"
	"time"

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
		os.Exit(exitInterrupted)
	})
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
