package peer

import (
	"fmt"
	"net"

	"golang.org/x/sys/windows"
)

func newServerResolver() Resolver {
	return resolver{kernel: serverKernel{}, system: []uint32{systemPID}}
}

// serverKernel asks about the other end of a pipe.
type serverKernel struct{ windowsKernel }

// ClientPID implements kernel for the process that made the pipe.
func (serverKernel) ClientPID(conn net.Conn) (uint32, error) { return ServerPID(conn) }

// ServerPID is the process that made the pipe of a connection.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getnamedpipeserverprocessid
func ServerPID(conn net.Conn) (pid uint32, err error) {
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, fmt.Errorf("a %T is not a named pipe", conn)
	}
	return pid, windows.GetNamedPipeServerProcessId(windows.Handle(file.Fd()), &pid)
}
