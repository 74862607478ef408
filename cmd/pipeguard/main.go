package main

import (
	"context"
	"os"

	"github.com/pipeguard/pipeguard/internal/interrupt"
	"github.com/pipeguard/pipeguard/internal/policy"
)

func main() {
	policy.SealProcess()
	ctx, stop := interrupt.Context(context.Background())
	code := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}
