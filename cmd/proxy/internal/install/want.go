package install

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// Want is an installation as it should be.
type Want struct {
	// Name is the service's.
	Name string
	// Source is the program that is installed: this one.
	Source string
	// Programs is the directory that it is installed in.
	Programs string
	// Data is the directory of configuration and records, for administrators alone.
	Data string
	// Args are the flags of the service.
	Args []string
	// Config is the configuration file that the flags name.
	Config string
	// ConfigFrom is copied to Config; empty leaves Config alone.
	ConfigFrom string
	// AllPrivileges leaves the service every privilege of its account, instead of those of Privileges alone.
	AllPrivileges bool
	// Needed are files that go with the configuration, such as keys: with a fault in one nothing is changed.
	Needed []Copy
	// Delivered are files that change while the service runs, such as bundles, which it verifies, and credentials. They may be missing.
	Delivered []Copy
	// Replace are services that are stopped and disabled in favour of this one. With Name among them, a service of that name is
	// taken over whatever it runs.
	Replace []string
}

// Parts are what an installation touches beside files.
type Parts struct {
	Manager winsvc.Manager
	// MakePrivate makes Want.Data, MakePrograms makes Want.Programs.
	MakePrivate, MakePrograms func(dir string) error
	// AddEventSource registers the source of the event log.
	AddEventSource func() (changed bool, err error)
	// CheckWriters refuses a file that other accounts than administrators can change or replace.
	CheckWriters func(file string) error
	// CheckConfig refuses a configuration that would not be accepted by Source.
	CheckConfig func(file string, text []byte) error
	// NeedsRestart says whether a service that runs with one configuration takes over another only when it starts again. May
	// be nil.
	NeedsRestart func(before, after []byte) bool
	// Say reports progress, in a line.
	Say func(format string, args ...any)
}

// Bounds of an installation: a service that drains may take 40 s by default, one that starts opens 23 pipes.
const (
	stopTimeout  = 90 * time.Second
	startTimeout = 60 * time.Second
)

// Names of files in Want.Data.
const (
	ConfigName = "proxy.yaml"
	// KeysName are the public keys that bundles of policies are verified with.
	KeysName = "bundle.key.pub"
	// BundleName is the newest bundle that came to the node, before it was verified.
	BundleName = "bundle.tar.gz"
	// KubeletTokenName is the token that the service asks the kubelet with.
	KubeletTokenName = "kubelet.token"
	// KubeletCAName are the certificates that the kubelet is known by.
	KubeletCAName = "kubelet-ca.crt"
	// ReplacedName is what was stopped in favour of the service.
	ReplacedName = "replaced.json"
)

// exeName is the name of the installed program.
const exeName = "proxy.exe"

// Installer brings an installation about. It is used by one goroutine at a time.
type Installer struct {
	want  Want
	parts Parts

	returned returned
}

// New reports every fault of w at once.
func New(w Want, p Parts) (*Installer, error) {
	var errs []error
	for _, f := range []struct{ name, value string }{{"name of the service", w.Name}, {"program", w.Source}, {"directory for programs", w.Programs}, {"directory for data", w.Data}, {"configuration", w.Config}} {
		if f.value == "" {
			errs = append(errs, fmt.Errorf("no %s", f.name))
		}
	}
	for _, name := range append([]string{w.Name}, w.Replace...) {
		if strings.ContainsAny(name, `/\`) || len(name) > 256 {
			errs = append(errs, fmt.Errorf("name of a service %q: want at most 256 characters, without / and \\", name))
		}
	}
	if slices.Contains(w.Replace, "") {
		errs = append(errs, errors.New("no name of a service to replace"))
	}
	for _, dir := range []string{w.Programs, w.Data} {
		if !filepath.IsAbs(dir) {
			errs = append(errs, fmt.Errorf("directory %q: want a full path", dir))
		}
	}
	for _, c := range slices.Concat(w.Needed, w.Delivered) {
		errs = append(errs, c.check(w.Data))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Installer{want: w, parts: p}, nil
}

func (i *Installer) exe() string { return filepath.Join(i.want.Programs, exeName) }

// spec is the service as it should be.
func (i *Installer) spec() winsvc.Spec {
	limits := winsvc.Limits{SID: winsvc.UnrestrictedSID}
	if !i.want.AllPrivileges {
		limits.Privileges = Privileges()
	}
	return specOf(i.want.Name, winsvc.CommandLine(i.exe(), i.want.Args...), &limits)
}

func specOf(name, command string, limits *winsvc.Limits) winsvc.Spec {
	return winsvc.Spec{
		Name: name, Command: command, Limits: limits, DisplayName: "CSI Proxy (Pipeguard)",
		Description:  "Serves the CSI Proxy APIs on named pipes, each call behind an access list and an audit record.",
		RestartDelay: 10 * time.Second, ResetPeriod: 24 * time.Hour,
	}
}
