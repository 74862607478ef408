package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/logkeys"
)

// flags are the command line: that of csi-proxy.exe, so that its install line works unchanged, and ours.
type flags struct {
	kubeletPath    string
	workingDirs    []string
	windowsService bool
	metricsAddress string

	config    string
	host      string
	socketDir string
	sddl      string
	auditLog  string
	version   bool

	klog     klogFlags
	idle     []string // flags that were given and do nothing here
	warnings []string
}

// privacyFlag is one of csi-proxy.exe for the smb group.
const privacyFlag = "require-privacy"

func parseFlags(args []string, out io.Writer) (*flags, error) {
	f := &flags{}
	set := flag.NewFlagSet("proxy", flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are printed once, by the caller
	set.Usage = func() {}
	set.StringVar(&f.kubeletPath, "kubelet-path", `C:\var\lib\kubelet`, "working `directory` of the kubelet; paths in requests must lie in it or in a -working-dir")
	set.Func("working-dir", "further `directory` that paths in requests may lie in; may be repeated", func(dir string) error {
		f.workingDirs = append(f.workingDirs, dir)
		return nil
	})
	set.BoolVar(&f.windowsService, "windows-service", false, "run under the Windows service manager, as service csiproxy")
	set.Bool(privacyFlag, true, "no smb pipes are served yet")
	set.StringVar(&f.metricsAddress, "metrics-bind-address", "", "`address` for http://ADDRESS/metrics, without authentication; empty means none")

	set.StringVar(&f.config, "config", "", "configuration `file` with the access list; without it, or while it is missing at the start, every call is denied")
	set.StringVar(&f.host, "host", defaultHost, "what requests act on: windows (this machine) or memory (an invented one, for trials)")
	set.StringVar(&f.socketDir, "socket-dir", "", "`directory` of the unix sockets that stand in for pipes, mode 0700; required outside Windows")
	set.StringVar(&f.sddl, "pipe-sddl", "", "security `descriptor` of the pipes; empty means SYSTEM and administrators, and nobody over the network")
	set.StringVar(&f.auditLog, "audit-log", "", "`file` for audit records, or - for standard output; empty means the configuration's, else "+defaultAuditLog)
	set.BoolVar(&f.version, "version", false, "print the version and exit")
	f.klog.register(set)

	if err := set.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.usage(set, out)
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w; see proxy -h", err)
	}
	return f, f.check(set)
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
	if f.host != hostWindows && f.host != hostMemory {
		errs = append(errs, fmt.Errorf("--host %q: want %s or %s", f.host, hostWindows, hostMemory))
	}
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
	set.Visit(func(given *flag.Flag) {
		if f.isIdle(given.Name) {
			f.idle = append(f.idle, "-"+given.Name)
		}
	})
	if !f.klog.toStderr && f.klog.file == "" {
		f.warnings = append(f.warnings, "log goes to standard error: -logtostderr=false needs a -log_file here")
	}
	return errors.Join(errs...)
}

// warn says in one line which flags have no effect.
func (f *flags) warn(log *zap.Logger) {
	if len(f.idle) > 0 {
		log.Warn("flags accepted without effect", zap.String(logkeys.Flag, strings.Join(f.idle, " ")))
	}
	for _, w := range f.warnings {
		log.Warn(w)
	}
}
