package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/pipeguard/pipeguard/internal/policy"
)

func main() {
	policy.SealProcess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
