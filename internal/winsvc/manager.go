package winsvc

import (
	"context"
	"errors"
	"time"
)

// ErrNoManager means that this system has no Windows service manager.
var ErrNoManager = errors.New("there is no Windows service manager on this system")

// Spec is a service as it should be. It runs as LocalSystem and starts with the node.
type Spec struct {
	Name, DisplayName, Description string
	// Command is the whole command line, as CommandLine makes it.
	Command string
	// RestartDelay is how long after a fault the service is started again; faults are forgotten after ResetPeriod.
	RestartDelay, ResetPeriod time.Duration
	// Limits may be nil, which leaves them as they are.
	Limits *Limits
}

// State is what a service does at a moment, in the words of sc.exe.
type State string

// States of a service.
const (
	Stopped         State = "STOPPED"
	StartPending    State = "START_PENDING"
	StopPending     State = "STOP_PENDING"
	Running         State = "RUNNING"
	ContinuePending State = "CONTINUE_PENDING"
	PausePending    State = "PAUSE_PENDING"
	Paused          State = "PAUSED"
)

// Start types of services, as Status has them.
const (
	Automatic = "automatic"
	Manual    = "manual"
	Disabled  = "disabled"
)

// Status is a service as it is. The zero value is a service that does not exist.
type Status struct {
	Installed bool
	State     State
	StartType string // Automatic, Manual or Disabled
	Account   string
	Command   string
	PID       uint32 // 0 if no process runs
	// ExitCode is the Windows error of the last run, or with 1066 the service's own code in ServiceExitCode.
	ExitCode, ServiceExitCode uint32
	Restarts                  []time.Duration // delays after which the recovery actions start the service again
	// Limits are nil where the service manager knows of none, as Wine's does not.
	Limits *Limits
}

// Change is what Put has done.
type Change struct {
	Changed bool     // the service is not as it was before
	Notes   []string // what could not be set although the service works without it
}

// Manager is a service manager. A service that does not exist is no error for Status, Dependents, Stop and Delete.
type Manager interface {
	Status(name string) (Status, error)
	// Dependents names the services that do not start without this one, whether or not they run.
	Dependents(name string) ([]string, error)
	// Put creates a service or makes it what Spec says.
	Put(Spec) (Change, error)
	// SetStart changes the start type of a service, and nothing else of it.
	SetStart(name, startType string) error
	// Start returns when the service runs, and fails if it stops or does not run before ctx is done.
	Start(ctx context.Context, name string) error
	// Stop returns when the service has stopped and its process is gone.
	Stop(ctx context.Context, name string) error
	// Reload asks the service to read its configuration again.
	Reload(name string) error
	Delete(name string) error
	Close() error
}

// CommandLine quotes a program and its arguments as Windows programs expect to find them.
// https://learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments
func CommandLine(exe string, args ...string) string {
	line := escapeArg(exe)
	for _, arg := range args {
		line += " " + escapeArg(arg)
	}
	return line
}
