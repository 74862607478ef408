package fakehost

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

type service struct{ Service }

func (s *service) runs() bool { return s.Status == handler.ServiceRunning }

func (h *Host) service(name handler.ServiceName) (*service, error) {
	s := h.services[fold(string(name))]
	if s == nil {
		return nil, fmt.Errorf("service %s: %w", name, fs.ErrNotExist)
	}
	return s, nil
}

// BIOSSerialNumber implements [handler.System].
func (h *Host) BIOSSerialNumber(ctx context.Context) (string, error) {
	return ask(ctx, h, "BIOSSerialNumber", nil, func() (string, error) { return h.options.BIOSSerial, nil })
}

// Service implements [handler.System].
func (h *Host) Service(ctx context.Context, name handler.ServiceName) (handler.ServiceInfo, error) {
	return about(ctx, h, "Service", string(name), h.service, name, func(s *service) handler.ServiceInfo {
		return handler.ServiceInfo{DisplayName: s.DisplayName, StartType: s.StartType, Status: s.Status}
	})
}

// StartService implements [handler.System].
func (h *Host) StartService(ctx context.Context, name handler.ServiceName) error {
	return h.change(ctx, "StartService", []string{string(name)}, func() (bool, error) {
		s, err := h.service(name)
		if err != nil {
			return false, err
		}
		return h.start(s, len(h.services))
	})
}

// start starts what s depends on first, as the service manager does.
func (h *Host) start(s *service, depth int) (changed bool, err error) {
	switch {
	case s.runs():
		return false, nil
	case s.StartType == handler.StartDisabled:
		return false, fmt.Errorf("start service %s: it is disabled: %w", s.Name, handler.ErrPrecondition)
	case depth == 0:
		return false, fmt.Errorf("start service %s: it depends on itself: %w", s.Name, handler.ErrPrecondition)
	}
	for _, name := range s.DependsOn {
		needed, err := h.service(name)
		if err != nil {
			return changed, fmt.Errorf("start service %s: %w", s.Name, err)
		}
		did, err := h.start(needed, depth-1)
		changed = changed || did
		if err != nil {
			return changed, fmt.Errorf("start service %s: %w", s.Name, err)
		}
	}
	s.Status = handler.ServiceRunning
	h.touched = append(h.touched, string(s.Name))
	return true, nil
}

// StopService implements [handler.System].
func (h *Host) StopService(ctx context.Context, name handler.ServiceName, force bool, permits handler.Permits) error {
	return h.change(ctx, "StopService", []string{string(name), strconv.FormatBool(force)}, func() (bool, error) {
		s, err := h.service(name)
		if err != nil {
			return false, err
		}
		if !s.runs() {
			return false, nil
		}
		if names := h.dependents(s); len(names) > 0 && !force {
			return false, fmt.Errorf("stop service %s: %s: %w", s.Name, strings.Join(names, ", ")+" depend on it", handler.ErrPrecondition)
		}
		if err := handler.CheckDependents(name, h.allDependents(s), permits); err != nil {
			return false, err
		}
		h.stop(s)
		return true, nil
	})
}

// stop stops the running services that depend on s, the most distant first, and then s.
func (h *Host) stop(s *service) {
	s.Status = handler.ServiceStopPending // services that depend on each other come here only once
	for _, name := range h.dependents(s) {
		if d := h.services[fold(name)]; d.runs() {
			h.stop(d)
		}
	}
	s.Status = handler.ServiceStopped
	h.touched = append(h.touched, string(s.Name))
}

// allDependents returns the names of the running services that depend on s, directly or through others, in order.
func (h *Host) allDependents(s *service) []string {
	names := h.dependents(s)
	for i := 0; i < len(names); i++ {
		for _, name := range h.dependents(h.services[fold(names[i])]) {
			if name != string(s.Name) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// dependents returns the names of the running services that depend on s directly, in order.
func (h *Host) dependents(s *service) []string {
	var names []string
	for _, d := range h.services {
		needs := slices.ContainsFunc(d.DependsOn, func(n handler.ServiceName) bool { return fold(string(n)) == fold(string(s.Name)) })
		if d.runs() && needs {
			names = append(names, string(d.Name))
		}
	}
	slices.Sort(names)
	return names
}
