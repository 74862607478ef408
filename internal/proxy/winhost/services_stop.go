package winhost

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// Numbers of the service manager with a meaning of their own here.
const (
	errorServiceRunning   = 1056
	errorServiceNotActive = 1062
)

// StopService implements [handler.System]. The service that this process is, and whatever it depends on, is not stopped.
func (s services) StopService(ctx context.Context, name handler.ServiceName, force bool, permits handler.Permits) error {
	order, err := s.stopOrder(ctx, string(name), map[string]bool{})
	if err != nil {
		return err
	}
	for _, n := range order {
		if s.isOwn(n) {
			return fmt.Errorf("stop service %s: service %s serves this request: %w", name, n, fs.ErrPermission)
		}
	}
	dependents := order[:len(order)-1]
	if len(dependents) > 0 && !force {
		return fmt.Errorf("stop service %s: %s depend on it: %w", name, strings.Join(dependents, ", "), handler.ErrPrecondition)
	}
	if err := handler.CheckDependents(name, dependents, permits); err != nil {
		return err
	}
	for _, n := range order {
		if err := s.stop(ctx, n); err != nil {
			return fmt.Errorf("stop service %s: %w", name, err)
		}
	}
	return nil
}

// stopOrder returns the services to stop: those that depend on a service, the most distant first, and it last. A
// service that is stopped has no dependents that are not.
func (s services) stopOrder(ctx context.Context, name string, seen map[string]bool) (order []string, err error) {
	seen[strings.ToLower(name)] = true
	var dependents []string
	if err := s.with(ctx, name, toQuery, func(svc service) error {
		dependents, err = svc.Dependents()
		return err
	}); err != nil {
		return nil, err
	}
	for _, dependent := range dependents {
		if seen[strings.ToLower(dependent)] {
			continue
		}
		before, err := s.stopOrder(ctx, dependent, seen)
		if err != nil {
			return nil, err
		}
		order = append(order, before...)
	}
	return append(order, name), nil
}

// stop stops one service and waits until it has.
func (s services) stop(ctx context.Context, name string) error {
	return s.with(ctx, name, toStop, func(svc service) error {
		state, _, err := svc.State()
		if err != nil || state == stopped {
			return err
		}
		if state == startPending {
			// It takes no orders before it runs.
			if err := await(ctx, svc, name, running, whileStarting); err != nil {
				return err
			}
		}
		if state != stopPending {
			err := svc.Stop()
			if isCode(err, errorServiceNotActive) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return await(ctx, svc, name, stopped, anyState)
	})
}
