package winsvc

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/svc/mgr"
)

const localSystem = "LocalSystem"

// configured are the settings that Put compares. A service has more settings, which stay as they are.
type configured struct {
	command, account, displayName string
	startType, serviceType        uint32
}

// queryConfig reads the basic settings. mgr.Config reads others too, and fails where one of those is not known.
// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-queryserviceconfigw
func queryConfig(s *mgr.Service) (configured, error) {
	buffer, err := grown(func(buffer unsafe.Pointer, size uint32, needed *uint32) error {
		return windows.QueryServiceConfig(s.Handle, (*windows.QUERY_SERVICE_CONFIG)(buffer), size, needed)
	})
	if err != nil {
		return configured{}, err
	}
	c := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&buffer[0]))
	return configured{
		command: windows.UTF16PtrToString(c.BinaryPathName), account: windows.UTF16PtrToString(c.ServiceStartName),
		displayName: windows.UTF16PtrToString(c.DisplayName), startType: c.StartType, serviceType: c.ServiceType,
	}, nil
}

// Put implements Manager.
func (m manager) Put(spec Spec) (Change, error) {
	s, err := m.open(spec.Name)
	if err != nil {
		return Change{}, err
	}
	var change Change
	if s == nil {
		s, err = m.create(spec)
		change.Changed = true
	} else {
		change.Changed, err = update(s, spec)
	}
	if err != nil {
		return Change{}, err
	}
	defer s.Close() //nolint:errcheck // nothing depends on it any more
	limited, notes, err := limit(s, spec.Limits)
	if err != nil {
		return Change{}, fmt.Errorf("limit what service %s may do: %w", spec.Name, err)
	}
	change.Changed = change.Changed || limited
	change.Notes = append(change.Notes, notes...)
	change.Notes = append(change.Notes, describe(s, spec)...)
	change.Notes = append(change.Notes, recoverBy(s, spec)...)
	return change, nil
}

func (m manager) create(spec Spec) (*mgr.Service, error) {
	args := SplitCommandLine(spec.Command)
	s, err := m.CreateService(spec.Name, args[0], mgr.Config{
		StartType: mgr.StartAutomatic, ErrorControl: mgr.ErrorNormal, DisplayName: spec.DisplayName,
	}, args[1:]...)
	if errors.Is(err, windows.ERROR_SERVICE_MARKED_FOR_DELETE) {
		return nil, fmt.Errorf("create service %s: the old one is deleted once every program that looks at it, such as services.msc, is closed: %w", spec.Name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("create service %s: %w", spec.Name, err)
	}
	return s, nil
}

// update closes the service if it fails.
func update(s *mgr.Service, spec Spec) (changed bool, err error) {
	now, err := queryConfig(s)
	want := configured{
		command: spec.Command, account: localSystem, displayName: spec.DisplayName,
		startType: mgr.StartAutomatic, serviceType: windows.SERVICE_WIN32_OWN_PROCESS,
	}
	if strings.EqualFold(now.account, localSystem) {
		now.account = localSystem
	}
	if err == nil && now != want {
		err = change(s, want)
		changed = true
	}
	if err != nil {
		return false, errors.Join(fmt.Errorf("configure service %s: %w", spec.Name, err), s.Close())
	}
	return changed, nil
}

// https://learn.microsoft.com/windows/win32/api/winsvc/nf-winsvc-changeserviceconfigw
func change(s *mgr.Service, c configured) error {
	command, err := windows.UTF16PtrFromString(c.command)
	if err != nil {
		return err
	}
	account, err := windows.UTF16PtrFromString(c.account)
	if err != nil {
		return err
	}
	display, err := windows.UTF16PtrFromString(c.displayName)
	if err != nil {
		return err
	}
	return windows.ChangeServiceConfig(s.Handle, c.serviceType, c.startType, windows.SERVICE_NO_CHANGE, command, nil, nil, nil, account, nil, display)
}

// describe sets the text that services.msc shows.
func describe(s *mgr.Service, spec Spec) (notes []string) {
	text, err := windows.UTF16PtrFromString(spec.Description)
	if err == nil {
		d := windows.SERVICE_DESCRIPTION{Description: text}
		err = windows.ChangeServiceConfig2(s.Handle, windows.SERVICE_CONFIG_DESCRIPTION, (*byte)(unsafe.Pointer(&d)))
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("description of the service: %v", err))
	}
	return notes
}

// recoverBy has the service started again after every fault, also after one that it reports itself.
func recoverBy(s *mgr.Service, spec Spec) (notes []string) {
	action := mgr.RecoveryAction{Type: mgr.ServiceRestart, Delay: spec.RestartDelay}
	want := []mgr.RecoveryAction{action, action, action} // the last one holds for all that follow
	if now, err := s.RecoveryActions(); err != nil || !slices.Equal(now, want) {
		if err := s.SetRecoveryActions(want, uint32(spec.ResetPeriod.Seconds())); err != nil { // #nosec G115 -- a day
			notes = append(notes, fmt.Sprintf("recovery of the service: %v", err))
		}
	}
	if err := s.SetRecoveryActionsOnNonCrashFailures(true); err != nil {
		notes = append(notes, fmt.Sprintf("recovery of the service after a fault that it reports: %v", err))
	}
	return notes
}
