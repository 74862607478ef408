package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/proxy/watch"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

const statusUsage = `proxy status shows the service: its state, how it starts, the program and its version on the disk, how it last ended, and
what it may do on this node, services that it replaces (install --replace) and whether one of them is back, and pipes with names of CSI Proxy that another process serves, so that calls on them are neither judged nor recorded. To find
those it opens each such pipe once, which the audit log shows as an idle connection. It also counts the SMB shares that are
mapped for the whole node, and names those that no volume uses, with who asked for them.

Usage:
  proxy status [flags]

Examples:
  proxy.exe status
  proxy.exe status -o json

Exit codes: 0 running, 1 could not be found out, 2 wrong command line, 3 installed and not running, 4 not installed.
`

// Exit codes of status.
const (
	exitNotRunning   = 3
	exitNotInstalled = 4
)

// serviceStatus is what status shows.
type serviceStatus struct {
	Service         string   `json:"service"`
	Installed       bool     `json:"installed"`
	State           string   `json:"state,omitempty"`
	StartType       string   `json:"startType,omitempty"`
	Account         string   `json:"account,omitempty"`
	PID             uint32   `json:"pid,omitempty"`
	Command         string   `json:"command,omitempty"`
	Program         string   `json:"program,omitempty"`
	Version         string   `json:"version,omitempty"`
	ExitCode        uint32   `json:"exitCode"`
	ServiceExitCode uint32   `json:"serviceExitCode"`
	ExitReason      string   `json:"exitReason,omitempty"`
	Restarts        []string `json:"restarts,omitempty"` // delays
	// SIDType and Privileges are what the service is set up with. No privileges mean that it is not limited to any.
	SIDType    winsvc.SIDType `json:"sidType,omitempty"`
	Privileges []string       `json:"privileges,omitempty"`
	// Process has the privileges and protections of the running process.
	Process *winsvc.Power `json:"process,omitempty"`
	// ProgramFault is how accounts other than administrators could change the program.
	ProgramFault string `json:"programFault,omitempty"`
	// Replaced are services that were stopped in favour of this one, as they are now.
	Replaced []replacedStatus `json:"replaced,omitempty"`
	// Unguarded are pipes that another process serves.
	Unguarded []watch.Foreign `json:"unguarded,omitempty"`
	// Mappings are the SMB shares that are mapped for the whole node.
	Mappings []mappingStatus `json:"mappings,omitempty"`
}

func statusCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	set := flag.NewFlagSet("status", flag.ContinueOnError)
	name := set.String("name", winsvc.DefaultName, "`name` of the service")
	output := set.String("o", "table", "`form` of the answer: table or json")
	if code, ok := parseCommand(set, statusUsage, args, 0, stdout, stderr); !ok {
		return code
	}
	if *output != "table" && *output != "json" {
		_ = printLine(stderr, "proxy status: -o %s: want table or json", *output) // there is nowhere else to say that it failed
		return exitUsage
	}
	manager, err := winsvc.Connect()
	if err != nil {
		return fail(stderr, "status", err)
	}
	now, err := manager.Status(*name)
	others, fault := askReplaced(dataDir, manager)
	if err = errors.Join(err, manager.Close()); err != nil {
		return fail(stderr, "status", err)
	}
	s := describeStatus(*name, now)
	s.Replaced = others
	if fault != nil {
		_ = fail(stderr, "status", fault)
	}
	s.Version = versionOnDisk(ctx, s.Program)
	if err := s.askPower(now.PID, winsvc.ProcessPower, filetrust.Check); err != nil {
		_ = fail(stderr, "status", err)
	}
	if s.Unguarded, err = unguarded(ctx, now.PID); err != nil {
		_ = fail(stderr, "status", err) // the rest is worth showing
	}
	list, err := hostMappings(ctx, now.Command)
	if err != nil {
		_ = fail(stderr, "status", err)
	}
	s.Mappings = describeMappings(list)
	if err := s.print(stdout, *output); err != nil {
		return fail(stderr, "status", err)
	}
	return s.code()
}

func describeStatus(name string, now winsvc.Status) serviceStatus {
	s := serviceStatus{
		Service: name, Installed: now.Installed, State: string(now.State), StartType: now.StartType, Account: now.Account, PID: now.PID,
		Command: now.Command, ExitCode: now.ExitCode, ServiceExitCode: now.ServiceExitCode,
	}
	if args := winsvc.SplitCommandLine(now.Command); len(args) > 0 {
		s.Program = args[0]
	}
	if now.Limits != nil {
		s.SIDType, s.Privileges = now.Limits.SID, now.Limits.Privileges
	}
	const specific = 1066 // ERROR_SERVICE_SPECIFIC_ERROR
	if now.ExitCode == specific {
		s.ExitReason = exitReasons[now.ServiceExitCode]
	}
	for _, delay := range now.Restarts {
		s.Restarts = append(s.Restarts, delay.String())
	}
	return s
}

func (s serviceStatus) code() int {
	switch {
	case !s.Installed:
		return exitNotInstalled
	case s.State != string(winsvc.Running):
		return exitNotRunning
	}
	return exitDone
}

func (s serviceStatus) print(out io.Writer, form string) error {
	if form == "json" {
		return printJSON(out, s)
	}
	if !s.Installed {
		err := printLine(out, "service %s is not installed", s.Service)
		return errors.Join(err, printMappings(out, s.Mappings), s.printReplaced(out), s.printUnguarded(out))
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	exit := fmt.Sprint(s.ExitCode)
	if s.ServiceExitCode != 0 {
		exit = fmt.Sprintf("%d, service-specific %d %s", s.ExitCode, s.ServiceExitCode, s.ExitReason)
	}
	for _, row := range [][2]string{
		{"service", s.Service}, {"state", s.State}, {"start type", s.StartType}, {"account", s.Account}, {"process", fmt.Sprint(s.PID)},
		{"program", s.Program}, {"version", s.Version}, {"command", s.Command}, {"last exit", strings.TrimSpace(exit)},
		{"restarts after", strings.Join(s.Restarts, ", ")},
	} {
		printRow(table, row[:]...)
	}
	s.printPower(table)
	return errors.Join(table.Flush(), printMappings(out, s.Mappings), s.printReplaced(out), s.printUnguarded(out))
}

func (s serviceStatus) printUnguarded(out io.Writer) error {
	for _, f := range s.Unguarded {
		if err := printLine(out, "NOT GUARDED %s", describeUnguarded(f)); err != nil {
			return err
		}
	}
	return nil
}

// versionOnDisk asks an installed program of ours for its version. It is run as the user of this command; the service runs it as SYSTEM.
// A program of another name is not run.
func versionOnDisk(ctx context.Context, program string) string {
	const ours = `\proxy.exe`
	if !strings.HasSuffix(strings.ToLower(program), ours) {
		return "unknown"
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "-version").Output() // #nosec G204 -- the service's own program
	if err != nil {
		return "unknown: " + err.Error()
	}
	line, _, _ := strings.Cut(string(out[:min(len(out), 500)]), "\n")
	return strings.TrimSpace(line)
}
