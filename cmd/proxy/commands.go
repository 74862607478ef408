package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
)

// subcommand returns an exit code.
type subcommand func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// subcommands are selected by the first argument. csi-proxy.exe has none: an argument without a dash is an error there.
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
		_ = printLine(stderr, "proxy %s: %v; see proxy %s --help", set.Name(), err, set.Name()) // as above
		return exitUsage, false
	}
	return exitDone, true
}

// fail prints an error and returns the exit code for it.
func fail(stderr io.Writer, command string, err error) int {
	complain(stderr, fmt.Errorf("proxy %s: %w", command, err))
	return exitFails
}

// complain prints an error, each of its faults as one line that acts on no terminal.
func complain(stderr io.Writer, err error) {
	for _, line := range inert.Faults(err) {
		_, _ = io.WriteString(stderr, line+"\n") // there is nowhere else to say that it failed
	}
}

// printLine prints one line that acts on no terminal, whatever the values hold.
func printLine(out io.Writer, format string, args ...any) error {
	_, err := io.WriteString(out, inert.Line(fmt.Sprintf(format, args...))+"\n")
	return err
}

// printRow is printLine for a row of a table.
func printRow(table *tabwriter.Writer, cells ...string) {
	for i, cell := range cells {
		cells[i] = inert.Line(cell)
	}
	_, _ = io.WriteString(table, strings.Join(cells, "\t")+"\n") // Flush reports it
}

// sayTo returns a function that prints progress, one line each; an error with several faults is one line. A failure to print is ignored: the command does
// not depend on it.
func sayTo(out io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) {
		args = slices.Clone(args)
		for i, arg := range args {
			if err, ok := arg.(error); ok {
				args[i] = strings.Join(inert.Faults(err), "; ")
			}
		}
		_ = printLine(out, format, args...)
	}
}

// printJSON prints a document for people and programs.
func printJSON(out io.Writer, v any) error {
	doc, err := inert.MarshalIndent(v)
	if err == nil {
		_, err = out.Write(doc)
	}
	return err
}
