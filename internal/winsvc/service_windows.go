package winsvc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/windows/svc"
)

func runService(ctx context.Context, o Options, f Function) error {
	s := &service{ctx: ctx, options: o, run: f}
	if err := svc.Run(o.Name, s); err != nil {
		return errors.Join(fmt.Errorf("run service %s: %w", o.Name, err), s.err)
	}
	return s.err
}

// service stands between the service manager and the function.
type service struct {
	ctx     context.Context // the caller's, handed through svc.Run, which takes none
	options Options
	run     Function
	err     error // of run; written before Execute returns
}

// The controls that a running service accepts.
const accepted = svc.AcceptStop | svc.AcceptShutdown | svc.AcceptParamChange

// A start and a stop are reported as going on every second, and each report promises the next within the hint:
// a manager that hears nothing for that long takes the service for hung.
const (
	pendingTick = time.Second
	pendingHint = 10 * time.Second
)

// pending is a state on the way to another. Nothing is accepted then: a stop that came before the pipes are
// open would be answered by a start that goes on.
func pending(state svc.State) svc.Status {
	// #nosec G115 -- a constant of seconds
	return svc.Status{State: state, WaitHint: uint32(pendingHint.Milliseconds())}
}

// Execute implements svc.Handler.
// https://learn.microsoft.com/windows/win32/services/service-status-transitions
func (s *service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	current := pending(svc.StartPending)
	status <- current
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- s.run(ctx, sync.OnceFunc(func() { close(ready) })) }()

	ticker := time.NewTicker(pendingTick)
	defer ticker.Stop()
	for {
		select {
		case s.err = <-done:
			return s.exit(current.State)
		case <-ready:
			ready = nil
			if current.State != svc.StartPending {
				continue
			}
			current = svc.Status{State: svc.Running, Accepts: accepted}
		case request := <-requests:
			switch request.Cmd {
			case svc.ParamChange:
				s.options.Reload()
			case svc.Stop, svc.Shutdown:
				cancel()
				if current.State != svc.StopPending {
					current = pending(svc.StopPending)
				}
			}
		case <-ticker.C:
			if current.State == svc.Running {
				continue
			}
			current.CheckPoint++
		}
		status <- current
	}
}

// exit reports a fault unless the service was asked to stop: the recovery actions would start it again although an
// administrator stopped it. The caller logs an error of the stop.
func (s *service) exit(state svc.State) (isServiceSpecific bool, code uint32) {
	if s.err != nil && state != svc.StopPending {
		return true, s.options.exitCode(s.err)
	}
	return false, 0
}

// exitFailed is the exit code of a run that ended with an error of no other code.
const exitFailed = 1

// exitCode returns the service-specific exit code for the error of a run.
func (o Options) exitCode(err error) uint32 {
	if o.ExitCode == nil {
		return exitFailed
	}
	return max(o.ExitCode(err), exitFailed)
}
