package winsvc

import (
	"cmp"
	"context"

	"github.com/pipeguard/pipeguard/internal/interrupt"
)

// DefaultName is the service name under which CSI Proxy is installed.
const DefaultName = "csiproxy"

// Options of a run.
type Options struct {
	// Service puts the run under the Windows service manager. It is not guessed, because the guess
	// (svc.IsWindowsService) depends on the parent process and is wrong in places.
	Service bool
	// Name is the service's name; empty means DefaultName.
	Name string
	// Reload is called when the configuration is to be read again: on a ParamChange of the service
	// manager, or by SIGHUP where there is one. It must not block. Nil ignores such requests.
	Reload func()
	// ExitCode gives the service-specific exit code of a run that ended with an error; 0 is taken for 1,
	// because only a code other than 0 makes the recovery actions of the service apply. Nil means 1.
	ExitCode func(error) uint32
}

// Function is the function that runs. It calls ready, any number of times, when it serves: a service is reported as starting until then.
type Function func(ctx context.Context, ready func()) error

// Run runs f until it ends by itself or its context is cancelled: by a Stop or a Shutdown of the service manager
// with Options.Service, else by SIGINT (Ctrl+C, Ctrl+Break) or SIGTERM. It returns when f has
// ended, with the error of f. A second signal ends the process at once, as is usual.
func Run(ctx context.Context, o Options, f Function) error {
	o.Name = cmp.Or(o.Name, DefaultName)
	if o.Reload == nil {
		o.Reload = func() {}
	}
	if o.Service {
		return runService(ctx, o, f)
	}
	ctx, stop := interrupt.Context(ctx)
	defer stop()
	defer onHangup(o.Reload)()
	return f(ctx, func() {})
}
