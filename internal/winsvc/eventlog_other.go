//go:build !windows

package winsvc

import "errors"

// ErrNoEventLog means that this system has no Windows event log.
var ErrNoEventLog = errors.New("there is no Windows event log on this system")

// OpenEventLog opens the event log.
func OpenEventLog() (EventLog, error) { return nil, ErrNoEventLog }

// InstallEventSource registers EventSource.
func InstallEventSource() (changed bool, err error) { return false, ErrNoEventLog }

// RemoveEventSource undoes InstallEventSource. A missing source is not an error.
func RemoveEventSource() error { return ErrNoEventLog }
