package winsvc

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/eventlog"
)

// sourceKey is where sources of the Application log are registered.
const sourceKey = `SYSTEM\CurrentControlSet\Services\EventLog\Application\` + EventSource

// OpenEventLog opens the event log. Without InstallEventSource events are written too, and the viewer complains about
// the missing description.
func OpenEventLog() (EventLog, error) {
	log, err := eventlog.Open(EventSource)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	return log, nil
}

// InstallEventSource registers EventSource with the message file of EventCreate.exe.
func InstallEventSource() (changed bool, err error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, sourceKey, registry.QUERY_VALUE)
	if err == nil {
		return false, key.Close()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("event source %s: %w", EventSource, err)
	}
	if err := eventlog.InstallAsEventCreate(EventSource, eventlog.Info|eventlog.Warning|eventlog.Error); err != nil {
		return false, fmt.Errorf("install event source %s: %w", EventSource, err)
	}
	return true, nil
}

// RemoveEventSource undoes InstallEventSource. A missing source is not an error.
func RemoveEventSource() error {
	if err := eventlog.Remove(EventSource); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove event source %s: %w", EventSource, err)
	}
	return nil
}
