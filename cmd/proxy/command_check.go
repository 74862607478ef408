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

	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

const checkConfigUsage = `proxy check-config reads a configuration file as the service would, and prints its rules and its revision, or every fault with its place.

Usage:
  proxy check-config FILE

Example:
  proxy.exe check-config C:\ProgramData\Pipeguard\proxy.yaml

Exit codes: 0 the file is in order, 1 it is not, 2 wrong command line.
`

func checkConfigCommand(_ context.Context, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("check-config", flag.ContinueOnError)
	if code, ok := parseCommand(set, checkConfigUsage, args, 1, stdout, stderr); !ok {
		return code
	}
	settings, policy, err := readConfig(set.Arg(0))
	if err == nil && settings.IsMissing() {
		err = errors.New("there is no such file: " + set.Arg(0))
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, err) // each line begins with file and place, as editors expect
		return exitFails
	}
	if err := printConfig(stdout, settings, policy); err != nil {
		return fail(stderr, "check-config", err)
	}
	return exitDone
}

func printConfig(out io.Writer, settings config.Proxy, policy *acl.Policy) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	add := func(cells ...string) { _, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) } // Flush reports it
	add("RULE", "PIPES", "OPERATIONS", "CALLERS", "PERMITS")
	for _, r := range settings.ACL.Rules {
		var callers []string
		for _, c := range r.Callers {
			callers = append(callers, strings.Join(parts("user", c.User, "exe", c.Exe, "assurance", c.Assurance), " "))
		}
		add(r.Name, strings.Join(r.Pipes, ", "), strings.Join(r.Operations, ", "), strings.Join(callers, "; "), strings.Join(r.Permits, ", "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, m := range settings.ACL.Pipes {
		if m.Mode == acl.LogOnly {
			if _, err := fmt.Fprintf(out, "note: %s is in mode LogOnly: whoever can open it is served\n", m.Pipe); err != nil {
				return err
			}
		}
	}
	if len(settings.ACL.Rules) == 0 {
		if _, err := fmt.Fprintln(out, "note: there are no rules, so every call is denied"); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "revision %s\n", policy.Revision())
	return err
}

// parts are the pairs of name and value whose value is set.
func parts(pairs ...string) (set []string) {
	for pair := range slices.Chunk(pairs, 2) {
		if value := pair[len(pair)-1]; value != "" {
			set = append(set, pair[0]+"="+value)
		}
	}
	return set
}
