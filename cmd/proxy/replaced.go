package main

import (
	"errors"
	"io"

	"github.com/pipeguard/pipeguard/cmd/proxy/internal/install"
	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// replacedStatus is a service that was stopped and disabled in favour of ours, as it is now.
type replacedStatus struct {
	Service   string `json:"service"`
	Installed bool   `json:"installed"`
	State     string `json:"state,omitempty"`
	StartType string `json:"startType,omitempty"`
	Command   string `json:"command,omitempty"`
	// Back says that it runs, or would start with the node: another program has put it back.
	Back bool `json:"back"`
}

// askReplaced asks the service manager for the services that were replaced.
func askReplaced(data string, manager winsvc.Manager) (all []replacedStatus, err error) {
	names, err := install.Replaced(data)
	errs := []error{err}
	for _, name := range names {
		now, err := manager.Status(name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, replacedStatus{
			Service: name, Installed: now.Installed, State: string(now.State), StartType: now.StartType, Command: now.Command,
			Back: now.Installed && (now.State != winsvc.Stopped || now.StartType != winsvc.Disabled),
		})
	}
	return all, errors.Join(errs...)
}

func (s serviceStatus) printReplaced(out io.Writer) error {
	for _, r := range s.Replaced {
		var err error
		switch {
		case r.Back:
			err = printLine(out, "REPLACED, AND BACK: service %s is %s, start type %s: %s", r.Service, r.State, r.StartType, r.Command)
		case r.Installed:
			err = printLine(out, "replaced: service %s is stopped and disabled until proxy uninstall", r.Service)
		default:
			err = printLine(out, "replaced: service %s is gone", r.Service)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
