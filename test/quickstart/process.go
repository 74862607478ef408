package main

import (
	"context"
	"os/exec"

	"github.com/pipeguard/pipeguard/test/harness"
)

func start(name, exe string, args ...string) (*harness.Process, error) {
	return harness.Start(name, exec.Command(exe, args...)) // #nosec G204 -- a program that was just built
}

// output runs a program to its end and returns what it wrote to each stream and its exit code.
func output(ctx context.Context, exe string, args ...string) (stdout, stderr string, code int, err error) {
	return harness.Run(exec.CommandContext(ctx, exe, args...)) // #nosec G204 -- a program that was just built
}
