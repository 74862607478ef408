package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// subcommand returns an exit code.
type subcommand func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// subcommands are what the first argument may name. csi-proxy.exe has none: an argument without a dash is an error there.
var subcommands = map[string]subcommand{
	"install":      installCommand,
	"uninstall":    uninstallCommand,
	"status":       statusCommand,
	"selftest":     selftestCommand,
	"check-config": checkConfigCommand,
}

// Exit codes of all subcommands.
const (
	exitDone  = 0
	exitFails = 1
	exitUsage = 2
)

// parseCommand reads the flags of a subcommand, and its arguments if it takes any. It returns false when there is nothing left to do.
func parseCommand(set *flag.FlagSet, usage string, args []string, arguments int, stdout, stderr io.Writer) (code int, ok bool) {
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	err := set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		var b strings.Builder
		b.WriteString(usage)
		b.WriteString("\nFlags, with one dash or two:\n")
		set.VisitAll(func(one *flag.Flag) { describe(&b, one) })
		_, _ = io.WriteString(stdout, b.String()) // there is nowhere else to say that it failed
		return exitDone, false
	case err == nil && set.NArg() != arguments:
		err = fmt.Errorf("%d arguments are given, want %d: %q", set.NArg(), arguments, set.Args())
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "proxy %s: %v; see proxy %s --help\n", set.Name(), err, set.Name())
		return exitUsage, false
	}
	return exitDone, true
}

// fail prints an error and returns the exit code for it.
func fail(stderr io.Writer, command string, err error) int {
	_, _ = fmt.Fprintf(stderr, "proxy %s: %v\n", command, err)
	return exitFails
}
