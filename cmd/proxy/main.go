// Command proxy serves the CSI Proxy APIs on the named pipes of a node, each call behind an access list and an audit record.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/garbage"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/version"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

func main() {
	policy.SealProcess()
	garbage.Limit()
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit code: 0 after an ordered stop, 1 after a fault, 2 for a command line that is wrong; a
// subcommand has its own.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stderr = inert.Terminal(stderr)
	if len(args) > 0 {
		if command := subcommands[args[0]]; command != nil {
			return command(ctx, args[1:], inert.Terminal(stdout), stderr)
		}
	}
	f, err := parseFlags(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		complain(stderr, fmt.Errorf("proxy: %w", err))
		if isService(args) {
			refuseToStart(ctx, err)
		}
		return 2
	case f.version:
		_, _ = fmt.Fprintln(stdout, version.String("proxy"))
		return 0
	}
	settings, configErr := f.loadConfig()
	log, closeLog, err := newLog(f, settings.Log, stderr)
	if err != nil {
		complain(stderr, err)
		if f.windowsService {
			refuseToStart(ctx, err)
		}
		return 1
	}
	defer closeLog()
	f.warn(settings.Log, log)
	if f.windowsService {
		sayPower(log, winsvc.Harden(), winsvc.ProcessPower)
		checkOwnProgram(log, os.Executable, filetrust.Check)
	}
	p := &proxyProgram{flags: f, settings: settings, log: log, stdout: stdout}
	options := winsvc.Options{Service: f.windowsService, Name: f.serviceName, Reload: p.reload, ExitCode: serviceExitCode}
	err = winsvc.Run(ctx, options, func(ctx context.Context, ready func()) error {
		if configErr != nil {
			return because(exitConfiguration, configErr)
		}
		return p.serve(ctx, ready)
	})
	if err != nil {
		log.Error("stopped by a fault", event(eventFault), zap.Error(err))
		return 1
	}
	log.Info("stopped", event(eventStopped))
	return 0
}

// isService says whether a command line that cannot be read asks for a service.
func isService(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return strings.TrimLeft(strings.TrimSuffix(strings.ToLower(arg), "=true"), "-") == "windows-service"
	})
}

// refuseToStart tells the service manager and the event log why the service does not start: the standard error of a service is
// not shown anywhere.
func refuseToStart(ctx context.Context, why error) {
	if events, err := winsvc.OpenEventLog(); err == nil {
		_ = events.Error(eventFault, why.Error())
		_ = events.Close()
	}
	_ = winsvc.Run(ctx, winsvc.Options{Service: true, ExitCode: serviceExitCode}, func(context.Context, func()) error {
		return because(exitCommandLine, why)
	}) // the manager was told, or there is none
}
