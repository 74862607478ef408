package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

const selftestUsage = `proxy selftest performs operations of every group of the node API on this host, in this process and without the service, and
prints the answers. It performs read-only operations alone: nothing on the host is changed.

Usage:
  proxy selftest [flags]

Examples:
  proxy.exe selftest
  proxy.exe selftest --json -kubelet-path D:\kubelet

Exit codes: 0 every operation was answered, 1 one was not, 2 wrong command line.
`

func selftestCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	f := &flags{}
	set := flag.NewFlagSet("selftest", flag.ContinueOnError)
	asJSON := set.Bool("json", false, "print JSON")
	f.registerHost(set)
	set.StringVar(&f.host, "host", defaultHost, "`what` is asked: windows (this machine) or memory (an invented one)")
	if code, ok := parseCommand(set, selftestUsage, args, 0, stdout, stderr); !ok {
		return code
	}
	if f.host != hostWindows && f.host != hostMemory {
		_ = printLine(stderr, "proxy selftest: --host %q: want %s or %s", f.host, hostWindows, hostMemory) // there is nowhere else to say that it failed
		return exitUsage
	}
	answers, err := f.selftest(ctx, stderr)
	if err == nil {
		err = printAnswers(stdout, answers, *asJSON)
	}
	if err != nil {
		return fail(stderr, "selftest", err)
	}
	if slices.ContainsFunc(answers, func(a answer) bool { return a.Result == resultFailed }) {
		return exitFails
	}
	return exitDone
}

// selftest performs the operations on the host that serve would act on.
func (f *flags) selftest(ctx context.Context, stderr io.Writer) (answers []answer, err error) {
	roots, err := f.roots()
	if err != nil {
		return nil, err
	}
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(zap.NewDevelopmentEncoderConfig()), zapcore.AddSync(stderr), zapcore.ErrorLevel)
	h, err := newHost(f.host, f.hostOptions(roots, zap.New(core)))
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", f.host, err)
	}
	defer func() { err = errors.Join(err, h.close()) }()
	handlers, err := handler.New(h.Hosts, roots)
	if err != nil {
		return nil, err
	}
	asker, err := newAsker(handlers)
	if err != nil {
		return nil, err
	}
	return asker.all(ctx, append([]string{f.kubeletPath}, f.workingDirs...)), nil
}

func printAnswers(out io.Writer, answers []answer, asJSON bool) error {
	if asJSON {
		return printJSON(out, answers)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	printRow(table, "GROUP", "OPERATION", "RESULT", "TIME", "DETAIL")
	for _, a := range answers {
		printRow(table, a.Group, a.Operation, a.Result, fmt.Sprintf("%.1f ms", a.Milliseconds), a.Detail)
	}
	return table.Flush()
}
