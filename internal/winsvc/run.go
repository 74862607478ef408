package winsvc

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// DefaultName is the service name under which CSI Proxy is installed.
const DefaultName = "csiproxy"

// Options say who ends the run.
type Options struct {
	// Service puts the run under the Windows service manager. It is not guessed, because the guess
	// (svc.IsWindowsService) depends on the parent process and is wrong in places.
	Service bool
	// Name is the service's name; empty means DefaultName.
	Name string
}

// Run runs f until it ends by itself or its context is cancelled: by a Stop or a Shutdown of the service manager
// with Options.Service, else by SIGINT (Ctrl+C, Ctrl+Break) or SIGTERM. It returns when f has
// ended, with the error of f. A second signal ends the process at once, as is usual.
func Run(ctx context.Context, o Options, f func(context.Context) error) error {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Service {
		return runService(ctx, o.Name, f)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the next signal is the runtime's again
	return f(ctx)
}
