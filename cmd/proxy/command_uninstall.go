package main

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

const uninstallUsage = `proxy uninstall stops the service, waits until calls in flight have ended, and removes it, the event-log source and
the token for the kubelet. Services that were replaced (install --replace) are put back. Programs, configuration and audit log stay; --purge removes
the first two.

Usage:
  proxy uninstall [flags]

Examples:
  proxy.exe uninstall
  proxy.exe uninstall --purge

Exit codes: 0 removed or not there, 1 not removed, 2 wrong command line.
`

func uninstallCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	r := install.Removal{Data: dataDir, RemoveEventSource: winsvc.RemoveEventSource}
	set := flag.NewFlagSet("uninstall", flag.ContinueOnError)
	set.StringVar(&r.Name, "name", winsvc.DefaultName, "`name` of the service")
	set.BoolVar(&r.Purge, "purge", false, "remove programs and configuration too; the audit log stays")
	if code, ok := parseCommand(set, uninstallUsage, args, 0, stdout, stderr); !ok {
		return code
	}
	manager, err := winsvc.Connect()
	if err != nil {
		return fail(stderr, "uninstall", err)
	}
	r.Manager = manager
	r.Say = sayTo(stdout)
	if err := errors.Join(r.Apply(ctx), manager.Close()); err != nil {
		return fail(stderr, "uninstall", err)
	}
	return exitDone
}
