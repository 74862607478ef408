package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// Where an installation lies. The paths are Windows' on every system.
const (
	programsDir = `C:\Program Files\Pipeguard`
	dataDir     = `C:\ProgramData\Pipeguard`
	configFile  = dataDir + `\` + install.ConfigName
)

const installUsage = `proxy install makes this program a service of the node, or brings an installed one up to date: it copies itself, sets the
service up to start with the node and again after a fault, makes C:\ProgramData\Pipeguard for administrators alone, and starts it.
What is as it should be is left alone and running. If the new service does not run, the old one is put back.

Usage:
  proxy install [flags] [-- FLAGS OF THE SERVICE]

Examples:
  proxy.exe install --config-from proxy.yaml
  proxy.exe install --config-from proxy.yaml -- -kubelet-path=D:\kubelet -log_file=C:\etc\kubernetes\logs\csi-proxy.log -logtostderr=false
  proxy.exe install --follow --config-from C:\hpc\config\proxy.yaml     in a container: keeps it so until it is asked to stop

Exit codes: 0 installed, 1 not installed or put back, 2 wrong command line.
`

// installFlags are the command line of install.
type installFlags struct {
	name, to, configFrom, healthAddress string
	follow                              bool
	service                             []string // flags of the service
}

func installCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var f installFlags
	set := flag.NewFlagSet("install", flag.ContinueOnError)
	set.StringVar(&f.name, "name", winsvc.DefaultName, "`name` of the service")
	set.StringVar(&f.to, "to", programsDir, "`directory` that the program is installed in; one that only administrators can change")
	set.StringVar(&f.configFrom, "config-from", "", "`file` that is checked and copied over "+configFile)
	set.BoolVar(&f.follow, "follow", false, "stay, and keep program, configuration and service as they are asked for here")
	set.StringVar(&f.healthAddress, "health-address", "", "with --follow, `address` for /healthz and /readyz of the installation")
	if i := slices.Index(args, "--"); i >= 0 {
		args, f.service = args[:i], args[i+1:]
	}
	if code, ok := parseCommand(set, installUsage, args, 0, stdout, stderr); !ok {
		return code
	}
	manager, err := winsvc.Connect()
	if err != nil {
		return fail(stderr, "install", err)
	}
	defer func() { _ = manager.Close() }() // what was to be done is done
	args, err = f.serviceArgs()
	if err == nil && f.healthAddress != "" && !f.follow {
		err = errors.New("--health-address needs --follow")
	}
	if err != nil {
		_, _ = fmt.Fprintf(stderr, "proxy install: %v; see proxy install --help\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx, manager, args, stdout); err != nil {
		return fail(stderr, "install", err)
	}
	return exitDone
}

// serviceArgs completes the flags of the service and checks them as the service will.
func (f *installFlags) serviceArgs() ([]string, error) {
	asked, err := parseFlags(f.service, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("flags of the service: %w", err)
	}
	if asked.version {
		return nil, errors.New("flags of the service: with -version it would not serve")
	}
	args := slices.Clone(f.service)
	switch {
	case !asked.given["config"]:
		args = append([]string{"-config", configFile}, args...)
	case f.configFrom != "" && !strings.EqualFold(asked.config, configFile):
		return nil, fmt.Errorf("--config-from is copied over %s, but the service is to read %s", configFile, asked.config)
	}
	switch {
	case !asked.given["service-name"]:
		if f.name != winsvc.DefaultName {
			args = append([]string{"-service-name", f.name}, args...)
		}
	case asked.serviceName != f.name:
		return nil, fmt.Errorf("flags of the service: -service-name %s, but its name is %s", asked.serviceName, f.name)
	}
	if !asked.windowsService {
		args = append([]string{"-windows-service"}, args...)
	}
	return args, nil
}

func (f *installFlags) run(ctx context.Context, manager winsvc.Manager, args []string, stdout io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	asked, err := parseFlags(args, io.Discard)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(stdout, format+"\n", args...) // what is done does not depend on who reads of it
	}
	installer, err := install.New(
		install.Want{Name: f.name, Source: self, Programs: f.to, Data: dataDir, Args: args, Config: asked.config, ConfigFrom: f.configFrom},
		install.Parts{
			Manager: manager, MakePrivate: winsvc.MakePrivate, MakePrograms: winsvc.MakePrograms,
			AddEventSource: winsvc.InstallEventSource, CheckOwners: winsvc.CheckOwners, CheckConfig: checkConfigText, Say: say,
		})
	if err != nil {
		return err
	}
	if f.follow {
		return f.keep(ctx, installer, say)
	}
	changed, err := installer.Apply(ctx)
	if err == nil && !changed {
		say("service %s runs, and is as it should be", f.name)
	}
	return err
}

// checkConfigText refuses a configuration that this program would not accept.
func checkConfigText(file string, text []byte) error {
	settings, err := config.ParseProxy(file, text)
	if err != nil {
		return err
	}
	_, err = compare(settings)
	return err
}
