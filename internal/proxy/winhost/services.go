package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/wmi"
)

// services are the services of the host, and its firmware.
type services struct {
	asked
	manager serviceManager
	own     string // the service that this process is
}

var _ handler.System = services{}

// serviceManager opens services, each with the right to do only what is about to be done.
type serviceManager interface {
	Open(name string, to serviceRight) (service, error)
}

type serviceRight int

const (
	toQuery serviceRight = iota
	toStart
	toStop
)

// service is an open service. Its numbers are those of the service manager, which the API shares.
type service interface {
	Config() (displayName string, start uint32, err error)
	// State returns the state and, of a stopped service, the system error code with which it ended.
	State() (state, exit uint32, err error)
	Start() error
	Stop() error
	// Dependents names the services that are not stopped and need this one, those that others of them need last.
	Dependents() ([]string, error)
	Close() error
}

// States of a service.
const (
	stopped         = uint32(handler.ServiceStopped)
	startPending    = uint32(handler.ServiceStartPending)
	stopPending     = uint32(handler.ServiceStopPending)
	running         = uint32(handler.ServiceRunning)
	continuePending = uint32(handler.ServiceContinuePending)
)

// Bounds of waiting for a service.
const (
	serviceTime = 30 * time.Second
	servicePoll = 100 * time.Millisecond
)

// with opens a service and acts on it.
func (s services) with(ctx context.Context, name string, to serviceRight, act func(service) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	svc, err := s.manager.Open(name, to)
	if err != nil {
		return err
	}
	return errors.Join(act(svc), svc.Close())
}

// Service implements [handler.System].
func (s services) Service(ctx context.Context, name handler.ServiceName) (info handler.ServiceInfo, err error) {
	err = s.with(ctx, string(name), toQuery, func(svc service) error {
		displayName, start, err := svc.Config()
		if err != nil {
			return err
		}
		state, _, err := svc.State()
		if err != nil {
			return err
		}
		if start > uint32(handler.StartDisabled) || state > uint32(handler.ServicePaused) {
			return fmt.Errorf("service %s has start type %d and state %d", name, start, state)
		}
		info = handler.ServiceInfo{
			DisplayName: displayName,
			StartType:   handler.StartType(start),     // #nosec G115 -- bounded above
			Status:      handler.ServiceStatus(state), // #nosec G115 -- bounded above
		}
		return nil
	})
	return info, err
}

// StartService implements [handler.System].
func (s services) StartService(ctx context.Context, name handler.ServiceName) error {
	return s.with(ctx, string(name), toStart, func(svc service) error {
		state, _, err := svc.State()
		if err != nil || state == running {
			return err
		}
		if state == stopPending {
			// It cannot be started before it has stopped.
			if err := await(ctx, svc, string(name), stopped, anyState); err != nil {
				return err
			}
		}
		if err := svc.Start(); err != nil && !isCode(err, errorServiceRunning) {
			return err
		}
		return await(ctx, svc, string(name), running, whileStarting)
	})
}

// await polls until a service is in the wanted state. A state on the way must be one of those that lead there.
func await(ctx context.Context, svc service, name string, want uint32, leads func(state uint32) bool) error {
	late := time.NewTimer(serviceTime)
	defer late.Stop()
	poll := time.NewTicker(servicePoll)
	defer poll.Stop()
	for {
		state, exit, err := svc.State()
		switch {
		case err != nil:
			return err
		case state == want:
			return nil
		case !leads(state):
			return fmt.Errorf("service %s went to state %d instead of %d, code=%d: %w", name, state, want, exit, handler.ErrPrecondition)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for service %s: %w", name, ctx.Err())
		case <-late.C:
			return fmt.Errorf("timed out waiting for service %s to go from state %d to %d: %w", name, state, want, context.DeadlineExceeded)
		case <-poll.C:
		}
	}
}

// whileStarting are the states of a service on its way to run. One that failed to start is stopped.
func whileStarting(state uint32) bool { return state == startPending || state == continuePending }

// anyState waits for a service that stops when it likes: it may say that it runs for a while after it was told.
func anyState(uint32) bool { return true }

// isOwn says whether a service is this process. Names are the same in any case.
func (s services) isOwn(name string) bool { return strings.EqualFold(name, s.own) }

// BIOSSerialNumber implements [handler.System].
func (s services) BIOSSerialNumber(ctx context.Context) (string, error) {
	const what = "the firmware's serial number"
	found, err := s.rows(ctx, what, wmi.Query{Namespace: wmi.CIMv2, Class: "CIM_BIOSElement", Select: []string{"SerialNumber"}})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", fmt.Errorf("failed to query %s. error: not found: %w", what, fs.ErrNotExist)
	}
	number, err := found[0].Text("SerialNumber") // there is one firmware; others are older versions of it
	return number, unknown(what, err)
}
