package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/filetrust"
)

const checkConfigUsage = `proxy check-config reads a configuration file as the service would, and prints what it says, or every fault with its place.

Usage:
  proxy check-config FILE

It prints a block of lines for each rule, those of profiles among them, with an empty line behind it, and then a line
for each other thing that decides; the first words of a line say what it is:

  rule NAME            and below it pipes, operations, paths, shares, services, permits, limits, and one line for each caller
  limits               of every caller whose rule sets none
  mode PIPE            LogOnly or Enforce
  tokens PIPE          off, ifPresent or required
  opens PIPE           accounts that may open it beside SYSTEM and administrators
  named OPERATION      callers that may do what the built-in request policy refuses to all others: rules spell it out beside the caller
  callers, policy, bundle    how far callers are identified, the request policy, where the cluster's policies come from
  warning              a setting that is valid and may not be meant, with its place
  note                 an effect that a reader might not expect
  revision             of the access list, as in audit records

The request policy's modules are tried, the keys and certificates that the file names are read, and the places of logs and of
kept bundles looked at, unless their paths are of another system. A warning names each with which the service would refuse to
start here. The bundle is not read: see "pipeguard bundle verify".

Example:
  proxy.exe check-config C:\ProgramData\Pipeguard\proxy.yaml

Exit codes: 0 the file is in order, 1 it is not, 2 wrong command line.
`

func checkConfigCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("check-config", flag.ContinueOnError)
	if code, ok := parseCommand(set, checkConfigUsage, args, 1, stdout, stderr); !ok {
		return code
	}
	settings, policy, err := readConfig(set.Arg(0))
	if err == nil && settings.IsMissing() {
		err = errors.New("there is no such file: " + set.Arg(0))
	}
	var known []access.API
	if err == nil {
		known, err = knownAPIs(settings)
	}
	var opens map[string][]string
	if err == nil {
		opens, err = settings.Accounts(known)
	}
	note := ""
	if err == nil {
		note, err = tryModules(ctx, settings)
	}
	if err != nil {
		complain(stderr, err) // each line begins with file and place, as editors expect
		return exitFails
	}
	s := summary{settings: settings, policy: policy, opens: opens}
	if note != "" {
		s.notes = append(s.notes, note)
	}
	unfit, note := unusable(settings)
	if note != "" {
		s.notes = append(s.notes, note)
	}
	for _, err := range slices.Concat(untrusted(settings), unfit, []error{filetrust.Check(set.Arg(0))}) {
		if err != nil {
			s.warnings = append(s.warnings, "here the service would refuse to start: "+err.Error())
		}
	}
	if err := s.print(stdout); err != nil {
		return fail(stderr, "check-config", err)
	}
	return exitDone
}

// tryModules activates the request policy as the service would. A directory that cannot be on this system is skipped, with a note.
func tryModules(ctx context.Context, settings config.Proxy) (note string, err error) {
	dir := settings.RequestPolicy.Modules
	if _, err := os.Stat(dir); dir != "" && err != nil && !filepath.IsAbs(dir) {
		return fmt.Sprintf("the modules in %s were not tried: the directory is not on this system", dir), nil
	}
	_, err = localRules(ctx, settings, zap.NewNop())
	return "", err
}

// describeLimits are the limits that are set, in words; empty if none is.
func describeLimits(l access.Limits) string {
	var s []string
	if l.Connections > 0 {
		s = append(s, fmt.Sprintf("%d connections", l.Connections))
	}
	if l.CallsPerSecond > 0 {
		s = append(s, fmt.Sprintf("%d calls per second", l.CallsPerSecond), fmt.Sprintf("%d at once", cmp.Or(l.Burst, l.CallsPerSecond)))
	}
	return join(s)
}
