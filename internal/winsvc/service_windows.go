package winsvc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/windows/svc"
)

func runService(ctx context.Context, name string, f func(context.Context) error) error {
	s := &service{ctx: ctx, run: f}
	if err := svc.Run(name, s); err != nil {
		return errors.Join(fmt.Errorf("run service %s: %w", name, err), s.err)
	}
	return s.err
}

// service stands between the service manager and the function.
type service struct {
	ctx context.Context // the caller's, handed through svc.Run, which takes none
	run func(context.Context) error
	err error // of run; written before Execute returns
}

// What the manager may ask. ParamChange is accepted, as CSI Proxy accepts it, and changes nothing.
const accepted = svc.AcceptStop | svc.AcceptShutdown | svc.AcceptParamChange

// A stop is reported as going on every second, and each report promises the next within the hint:
// a manager that hears nothing for that long takes the service for hung.
const (
	stopTick = time.Second
	stopHint = 10 * time.Second
)

// exitFailed is the service-specific exit code of a run that ended with an error. It is
// not zero, so that the recovery actions of the service apply.
const exitFailed = 1

// Execute implements svc.Handler.
// https://learn.microsoft.com/windows/win32/services/service-status-transitions
func (s *service) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	status <- svc.Status{State: svc.StartPending}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.run(ctx) }()
	current := svc.Status{State: svc.Running, Accepts: accepted}
	status <- current

	var tick <-chan time.Time // ticks once the service is stopping
	for {
		select {
		case s.err = <-done:
			return s.exit()
		case request := <-requests:
			switch request.Cmd {
			case svc.Interrogate:
			case svc.Stop, svc.Shutdown:
				cancel()
				if tick == nil {
					ticker := time.NewTicker(stopTick)
					defer ticker.Stop()
					tick = ticker.C
					// #nosec G115 -- a constant of seconds
					current = svc.Status{State: svc.StopPending, WaitHint: uint32(stopHint.Milliseconds())}
				}
			}
			status <- current
		case <-tick:
			current.CheckPoint++
			status <- current
		}
	}
}

func (s *service) exit() (isServiceSpecific bool, code uint32) {
	if s.err != nil {
		return true, exitFailed
	}
	return false, 0
}
