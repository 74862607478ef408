package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/config"
	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/interrupt"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// Where an installation lies. The paths are Windows' on every system.
const (
	programsDir = `C:\Program Files\Pipeguard`
	dataDir     = `C:\ProgramData\Pipeguard`
	configFile  = dataDir + `\` + install.ConfigName

	bundleFile     = dataDir + `\` + install.BundleName
	bundleKeysFile = dataDir + `\` + install.KeysName
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

With --bundle-from and --bundle-keys-from it also keeps C:\ProgramData\Pipeguard\bundle.tar.gz and bundle.key.pub as they are there, for the
configuration to name under bundle. With --identity-from it keeps what the service asks the kubelet with, for containers.kubelet. With
--replace it stops and disables csi-proxy.exe that a platform installed as a service of another name. With --report-as it reports to the cluster, in the GuardedNode of that name, which policies the service enforces.

Exit codes: 0 installed, 1 not installed or put back, 2 wrong command line.
`

// installFlags are the command line of install.
type installFlags struct {
	name, to, configFrom, healthAddress string
	bundleFrom, bundleKeysFrom          string
	follow, allPrivileges               bool
	replace                             []string // other services
	identity                            identityFlags
	report                              reportFlags
	service                             []string // flags of the service
}

func installCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var f installFlags
	set := flag.NewFlagSet("install", flag.ContinueOnError)
	set.StringVar(&f.name, "name", winsvc.DefaultName, "`name` of the service")
	set.StringVar(&f.to, "to", programsDir, "`directory` that the program is installed in; one that only administrators can change")
	set.StringVar(&f.configFrom, "config-from", "", "`file` that is checked and copied over "+configFile)
	set.StringVar(&f.bundleFrom, "bundle-from", "", "`file` with a bundle of policies that is copied over "+bundleFile+" whenever it changes; it may be missing")
	set.StringVar(&f.bundleKeysFrom, "bundle-keys-from", "", "`file` with the public keys of bundles that is checked and copied over "+bundleKeysFile)
	set.Func("replace", "`name` of a service that is stopped and disabled in favour of this one, until uninstall; with the name of --name, whatever that service runs is replaced. May be repeated", func(name string) error {
		f.replace = append(f.replace, name)
		return nil
	})
	f.identity.register(set)
	f.report.register(set)
	set.BoolVar(&f.follow, "follow", false, "stay, and keep program, configuration and service as they are asked for here")
	set.BoolVar(&f.allPrivileges, "all-privileges", false, "leave the service every privilege of LocalSystem, and not only those that its operations are known to need")
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
	if err == nil {
		err = f.check()
	}
	if err != nil {
		_ = printLine(stderr, "proxy install: %v; see proxy install --help", err) // there is nowhere else to say that it failed
		return exitUsage
	}
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	if err := f.run(ctx, manager, args, stdout); err != nil {
		return fail(stderr, "install", err)
	}
	return exitDone
}

// check refuses flags that have a meaning only together with others.
func (f *installFlags) check() error {
	if err := f.identity.check(); err != nil {
		return err
	}
	if f.follow {
		return f.report.check()
	}
	switch {
	case f.healthAddress != "":
		return errors.New("--health-address needs --follow")
	case f.report != reportFlags{}:
		return errors.New("--report-as needs --follow")
	}
	return nil
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
	if file := asked.logPath(config.Log{}); filepath.IsAbs(file) {
		if err := ordinary(file); err != nil {
			return nil, fmt.Errorf("flags of the service: -log_file: %w", err)
		}
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
	say := sayTo(stdout)
	want := install.Want{Name: f.name, Source: self, Programs: f.to, Data: dataDir, Args: args, Config: asked.config, ConfigFrom: f.configFrom, AllPrivileges: f.allPrivileges, Replace: f.replace}
	if f.bundleKeysFrom != "" {
		want.Needed = append(want.Needed, install.Copy{From: f.bundleKeysFrom, To: bundleKeysFile, Read: readBundleKeys})
	}
	if f.bundleFrom != "" {
		want.Delivered = append(want.Delivered, install.Copy{From: f.bundleFrom, To: bundleFile, Read: bundle.ReadFile})
	}
	want.Delivered = append(want.Delivered, f.identity.copies()...)
	installer, err := install.New(
		want,
		install.Parts{
			Manager: manager, MakePrivate: winsvc.MakePrivate, MakePrograms: winsvc.MakePrograms,
			AddEventSource: winsvc.InstallEventSource, CheckWriters: filetrust.Check, CheckConfig: checkConfigText,
			NeedsRestart: needsRestart, Say: say,
		})
	if err != nil {
		return err
	}
	if f.follow {
		return f.keep(ctx, installer, asked.metricsAddress, say)
	}
	changed, err := installer.Apply(ctx)
	if err == nil && !changed {
		say("service %s runs, and is as it should be", f.name)
	}
	return err
}

// readBundleKeys reads keys of bundles, and refuses a file that the service would refuse.
func readBundleKeys(file string) ([]byte, error) {
	text, err := bundle.ReadKeyFile(file)
	if err != nil {
		return nil, err
	}
	if _, err := bundle.ParseKeys(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// needsRestart compares two configurations. The service does not run with one that cannot be read.
func needsRestart(before, after []byte) bool {
	old, err := config.ParseProxy(configFile, before)
	next, errNext := config.ParseProxy(configFile, after)
	return err != nil || errNext != nil || len(next.RestartNeeded(old)) > 0
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
