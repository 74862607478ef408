package winsvc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc"
	"golang.org/x/sys/windows/svc/mgr"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// pollState is how often a service is asked for its state: the manager sends no events to a program without windows.
const pollState = 100 * time.Millisecond

type manager struct{ *mgr.Mgr }

// Connect opens the service manager of this machine. It takes an administrator.
func Connect() (Manager, error) {
	m, err := mgr.Connect()
	if err != nil {
		return nil, fmt.Errorf("open the service manager: %w", err)
	}
	return manager{m}, nil
}

// Close ends the connection.
func (m manager) Close() error { return m.Disconnect() }

// open returns nil for a service that does not exist.
func (m manager) open(name string) (*mgr.Service, error) {
	s, err := m.OpenService(name)
	if errors.Is(err, windows.ERROR_SERVICE_DOES_NOT_EXIST) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open service %s: %w", name, err)
	}
	return s, nil
}

// Status implements Manager.
func (m manager) Status(name string) (Status, error) {
	s, err := m.open(name)
	if s == nil || err != nil {
		return Status{}, err
	}
	defer s.Close() //nolint:errcheck // a handle that was only read through
	now, err := s.Query()
	if err != nil {
		return Status{}, fmt.Errorf("query service %s: %w", name, err)
	}
	c, err := queryConfig(s)
	if err != nil {
		return Status{}, fmt.Errorf("query configuration of service %s: %w", name, err)
	}
	status := Status{
		Installed: true, State: states[now.State], StartType: startTypes[c.startType], Account: c.account, Command: c.command,
		PID: now.ProcessId, ExitCode: now.Win32ExitCode, ServiceExitCode: now.ServiceSpecificExitCode,
	}
	if actions, err := s.RecoveryActions(); err == nil { // they are read for display alone
		for _, a := range actions {
			if a.Type == mgr.ServiceRestart {
				status.Restarts = append(status.Restarts, a.Delay)
			}
		}
	}
	switch limits, err := queryLimits(s); {
	case err == nil:
		status.Limits = &limits
	case !isUnknownLevel(err):
		return Status{}, fmt.Errorf("query limits of service %s: %w", name, err)
	}
	return status, nil
}

var states = map[svc.State]State{
	svc.Stopped: Stopped, svc.StartPending: StartPending, svc.StopPending: StopPending, svc.Running: Running,
	svc.ContinuePending: ContinuePending, svc.PausePending: PausePending, svc.Paused: Paused,
}

var startTypes = map[uint32]string{
	windows.SERVICE_AUTO_START: Automatic, windows.SERVICE_DEMAND_START: Manual, windows.SERVICE_DISABLED: Disabled,
}

// SetStart implements Manager.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfigw
func (m manager) SetStart(name, startType string) error {
	for value, known := range startTypes {
		if known == startType {
			return m.setStart(name, value)
		}
	}
	return fmt.Errorf("start type of service %s: %q: want %s, %s or %s", name, startType, Automatic, Manual, Disabled)
}

func (m manager) setStart(name string, value uint32) error {
	s, err := m.open(name)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("start type of service %s: it does not exist", name)
	}
	defer s.Close() //nolint:errcheck // nothing depends on it any more
	const same = windows.SERVICE_NO_CHANGE
	if err := windows.ChangeServiceConfig(s.Handle, same, value, same, nil, nil, nil, nil, nil, nil, nil); err != nil {
		return fmt.Errorf("start type of service %s: %w", name, err)
	}
	return nil
}

// Dependents implements Manager.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-enumdependentservicesw
func (m manager) Dependents(name string) ([]string, error) {
	s, err := m.open(name)
	if s == nil || err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // a handle that was only read through
	names, err := s.ListDependentServices(svc.AnyActivity)
	if err != nil {
		return nil, fmt.Errorf("services that depend on service %s: %w", name, err)
	}
	return names, nil
}

// Start implements Manager.
func (m manager) Start(ctx context.Context, name string) error {
	s, err := m.open(name)
	if err != nil {
		return err
	}
	if s == nil {
		return fmt.Errorf("start service %s: it does not exist", name)
	}
	defer s.Close() //nolint:errcheck // nothing depends on it any more
	if err := s.Start(); err != nil && !errors.Is(err, windows.ERROR_SERVICE_ALREADY_RUNNING) {
		return fmt.Errorf("start service %s: %w", name, err)
	}
	status, err := await(ctx, s, svc.Running, svc.Stopped)
	if err != nil {
		return fmt.Errorf("start service %s: %w", name, err)
	}
	if status.State == svc.Stopped {
		return fmt.Errorf("service %s stopped while it was starting: exit code %d, service-specific %d", name, status.Win32ExitCode, status.ServiceSpecificExitCode)
	}
	return nil
}

// Stop implements Manager.
func (m manager) Stop(ctx context.Context, name string) error {
	s, err := m.open(name)
	if s == nil || err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing depends on it any more
	status, err := s.Query()
	if err != nil {
		return fmt.Errorf("query service %s: %w", name, err)
	}
	if status.State == svc.StartPending { // it accepts no stop yet
		if status, err = await(ctx, s, svc.Running, svc.Stopped); err != nil {
			return fmt.Errorf("stop service %s: %w", name, err)
		}
	}
	if status.State == svc.Stopped {
		return nil
	}
	// The process is held before it is asked to leave: later its number may be another's.
	gone, err := hold(status.ProcessId)
	if err != nil {
		return fmt.Errorf("stop service %s: %w", name, err)
	}
	defer gone.close()
	if _, err := s.Control(svc.Stop); err != nil && !errors.Is(err, windows.ERROR_SERVICE_NOT_ACTIVE) {
		return fmt.Errorf("stop service %s: %w", name, err)
	}
	if _, err := await(ctx, s, svc.Stopped); err != nil {
		return fmt.Errorf("stop service %s: %w", name, err)
	}
	return gone.wait(ctx)
}

// await returns when the service is in one of the states.
func await(ctx context.Context, s *mgr.Service, wanted ...svc.State) (svc.Status, error) {
	for {
		status, err := s.Query()
		if err != nil {
			return status, err
		}
		if slices.Contains(wanted, status.State) {
			return status, nil
		}
		if !periodic.Sleep(ctx, pollState) {
			return status, fmt.Errorf("it is in state %s: %w", states[status.State], ctx.Err())
		}
	}
}

// Reload implements Manager.
func (m manager) Reload(name string) error {
	s, err := m.open(name)
	if s == nil || err != nil {
		return err
	}
	defer s.Close() //nolint:errcheck // nothing depends on it any more
	if _, err := s.Control(svc.ParamChange); err != nil {
		return fmt.Errorf("ask service %s to reload: %w", name, err)
	}
	return nil
}

// Delete implements Manager.
func (m manager) Delete(name string) error {
	s, err := m.open(name)
	if s == nil || err != nil {
		return err
	}
	if err := errors.Join(s.Delete(), s.Close()); err != nil {
		return fmt.Errorf("delete service %s: %w", name, err)
	}
	return nil
}
