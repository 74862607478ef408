package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// limit ends a run that hangs; the story takes a few seconds.
const limit = 2 * time.Minute

var errUsage = errors.New("usage: incident DIR, a directory that is empty or not there; the node's log is left in it: as it was, edited, and rolled back")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	ctx, cancel := context.WithTimeout(ctx, limit)
	err := run(ctx, os.Args[1:], os.Stdout)
	cancel()
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "incident:", err)
		os.Exit(1)
	}
}

// run is the program, and with nodeWord before its arguments the process that the program starts and kills.
func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == nodeWord:
		return runNode(ctx, args[1:], out)
	case len(args) != 1 || args[0] == "" || args[0][0] == '-':
		return errUsage
	}
	return play(ctx, args[0], out)
}
