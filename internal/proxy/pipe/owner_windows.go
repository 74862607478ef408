package pipe

import (
	"context"
	"fmt"

	"golang.org/x/sys/windows"
)

// serverPID is the process that serves the pipe.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getnamedpipeserverprocessid
func serverPID(ctx context.Context, name string, o Options) (pid uint32, err error) {
	conn, err := Dial(ctx, name, o)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, fmt.Errorf("a %T has no handle", conn)
	}
	if err := windows.GetNamedPipeServerProcessId(windows.Handle(file.Fd()), &pid); err != nil {
		return 0, fmt.Errorf("read the server's process id: %w", err)
	}
	return pid, nil
}
