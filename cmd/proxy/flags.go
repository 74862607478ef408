package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/config"
	names "github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// flags are the command line: the flags of csi-proxy.exe, so that its install line works unchanged, and ours.
type flags struct {
	kubeletPath    string
	workingDirs    []string
	windowsService bool
	serviceName    string
	nodeName       string
	metricsAddress string

	config    string
	host      string
	socketDir string
	sddl      string
	auditLog  string
	journal   string
	version   bool

	requirePrivacy bool

	klog  klogFlags
	given map[string]bool // flags that stand on the command line
	idle  []string        // flags that were given and have no effect here
}

// defaultKubelet is the working directory of csi-proxy.exe.
const defaultKubelet = `C:\var\lib\kubelet`

func parseFlags(args []string, out io.Writer) (*flags, error) {
	f := &flags{given: map[string]bool{}}
	set := flag.NewFlagSet("proxy", flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are printed once, by the caller
	set.Usage = func() {}
	f.registerHost(set)
	set.BoolVar(&f.windowsService, "windows-service", false, "run under the Windows service manager")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", "", "`address` for http://ADDRESS/metrics, /healthz and /readyz, without authentication; empty means none")

	set.StringVar(&f.config, "config", "", "configuration `file` with the access list; while it is missing, every call is denied; empty means "+cmp.Or(defaultConfig, "none"))
	set.StringVar(&f.serviceName, "service-name", winsvc.DefaultName, "`name` of this service, which no request may stop")
	set.StringVar(&f.nodeName, "node-name", "", "`name` of this node in the cluster, which tokens and the kubelet's certificate are compared with; empty means the machine's in lower case")
	set.StringVar(&f.host, "host", "", "`what` requests act on: windows (this machine), upstream (the csi-proxy.exe of the configuration) or memory (an invented one, for trials; on Windows only in a program built with -tags fakehost); empty means the configuration's backend, else "+defaultHost)
	set.StringVar(&f.socketDir, "socket-dir", "", "`directory` of the unix sockets that stand in for pipes, mode 0700; required outside Windows")
	set.StringVar(&f.sddl, "pipe-sddl", "", "security `descriptor` of the pipes; empty means SYSTEM and administrators, and no access over the network")
	set.StringVar(&f.auditLog, "audit-log", "", "`directory` for audit records, or - for standard output; empty means the configuration's, else "+defaultAuditLog)
	set.StringVar(&f.journal, "memory-journal", "", "`file` to which the invented machine of --host memory adds a line before and after each operation, for trials")
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	f.klog.register(set)

	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.usage(set, out)
		return nil, err
	} else if err != nil {
		return f, fmt.Errorf("%w; see proxy -h", err)
	}
	return f, f.check(set)
}

// registerHost registers the flags that say what is done on the host.
func (f *flags) registerHost(set *flag.FlagSet) {
	set.StringVar(&f.kubeletPath, "kubelet-path", defaultKubelet, "working `directory` of the kubelet; paths in requests must lie in it or in a -working-dir")
	set.Func("working-dir", "further `directory` that paths in requests may lie in; may be repeated", func(dir string) error {
		f.workingDirs = append(f.workingDirs, dir)
		return nil
	})
	set.BoolVar(&f.requirePrivacy, "require-privacy", true, "map SMB shares with encryption; a server that cannot encrypt is refused")
}

// check reports every fault of a command line at once.
func (f *flags) check(set *flag.FlagSet) error {
	if f.version {
		return nil
	}
	var errs []error
	if set.NArg() > 0 {
		errs = append(errs, fmt.Errorf("unexpected argument %q: all settings are flags", set.Arg(0)))
	}
	if !slices.Contains([]string{"", hostWindows, hostMemory, hostUpstream}, f.host) {
		errs = append(errs, fmt.Errorf("--host %q: want %s, %s or %s", f.host, hostWindows, hostUpstream, hostMemory))
	}
	f.config = cmp.Or(f.config, defaultConfig)
	onWindows := runtime.GOOS == "windows"
	switch {
	case f.host == hostWindows && !onWindows:
		errs = append(errs, errors.New("--host windows: this is not Windows"))
	case onWindows && f.socketDir != "":
		errs = append(errs, errors.New("--socket-dir: on Windows there are pipes and no sockets"))
	case !onWindows && f.socketDir == "":
		errs = append(errs, errors.New("--socket-dir is required outside Windows"))
	case !onWindows && f.sddl != "":
		errs = append(errs, errors.New("--pipe-sddl: only pipes of Windows have security descriptors"))
	}
	errs = append(errs, f.checkValues()...)
	set.Visit(func(given *flag.Flag) {
		f.given[given.Name] = true
		if f.klog.isIdle(given.Name) {
			f.idle = append(f.idle, "-"+given.Name)
		}
	})
	return errors.Join(errs...)
}

// checkValues returns an error for each flag whose value would prevent a start.
func (f *flags) checkValues() (errs []error) {
	if _, err := f.roots(); err != nil {
		errs = append(errs, fmt.Errorf("-kubelet-path, -working-dir: %w", err))
	}
	if _, err := pipe.Descriptor(f.sddl, nil); err != nil {
		errs = append(errs, fmt.Errorf("-pipe-sddl: %w", err))
	}
	if f.nodeName != "" && !names.IsSubdomain(f.nodeName) {
		errs = append(errs, fmt.Errorf("-node-name %q: want the name of a Node", f.nodeName))
	}
	if f.metricsAddress != "" {
		_, port, err := net.SplitHostPort(f.metricsAddress)
		if err == nil {
			_, err = net.DefaultResolver.LookupPort(context.Background(), "tcp", port)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("-metrics-bind-address: want ADDRESS:PORT, such as 127.0.0.1:9100: %w", err))
		}
	}
	return errs
}

// node is the name of this node in the cluster. A kubelet that is told no other registers the machine's name in lower case.
func (f *flags) node(machine string) string { return cmp.Or(f.nodeName, strings.ToLower(machine)) }

// warn says in one line which flags have no effect.
func (f *flags) warn(c config.Log, log *zap.Logger) {
	if len(f.idle) > 0 {
		log.Warn("flags accepted without effect", zap.String(logkeys.Flag, strings.Join(f.idle, " ")))
	}
	if !f.klog.toStderr && f.logPath(c) == "" {
		log.Warn("log goes to standard error: -logtostderr=false needs a -log_file, or log.path in the configuration")
	}
}
