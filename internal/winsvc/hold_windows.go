package winsvc

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// held is a process that is waited for; 0 is none.
type held windows.Handle

func hold(pid uint32) (held, error) {
	if pid == 0 {
		return 0, nil
	}
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) { // it has gone already
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open process %d: %w", pid, err)
	}
	return held(h), nil
}

func (h held) close() {
	if h != 0 {
		_ = windows.CloseHandle(windows.Handle(h)) // it was only waited for
	}
}

// pollMS is how often the end of waiting is looked for, in milliseconds.
const pollMS = 100

// wait returns when the process has gone.
func (h held) wait(ctx context.Context) error {
	if h == 0 {
		return nil
	}
	for ctx.Err() == nil {
		event, err := windows.WaitForSingleObject(windows.Handle(h), pollMS)
		if err != nil {
			return fmt.Errorf("wait for the process: %w", err)
		}
		if event == windows.WAIT_OBJECT_0 {
			return nil
		}
	}
	return fmt.Errorf("the service has stopped and its process goes on: %w", ctx.Err())
}
