package pipe

import (
	"context"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/windows"
)

// dropWithin is how long a question waits to be dropped by the listener that it reached. It is over sooner as a rule: a
// listener that takes longer counts it as a connection of this process.
const dropWithin = time.Second

// serverOf is the process that serves the pipe.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getnamedpipeserverprocessid
func serverOf(conn net.Conn) (pid uint32, err error) {
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, fmt.Errorf("a %T has no handle", conn)
	}
	if err := windows.GetNamedPipeServerProcessId(windows.Handle(file.Fd()), &pid); err != nil {
		return 0, fmt.Errorf("read the server's process id: %w", err)
	}
	return pid, nil
}

// serverPID is the process that serves the pipe.
func serverPID(ctx context.Context, name string, o Options) (uint32, error) {
	conn, err := Dial(ctx, name, o)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	return serverOf(conn)
}
