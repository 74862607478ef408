package peer

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/windows"
)

// systemPID is the process in which Windows runs its own threads.
const systemPID = 4

func newResolver(p *placer) Resolver {
	k := windowsKernel{}
	if p != nil {
		k.rights = windows.PROCESS_QUERY_INFORMATION
	}
	return resolver{kernel: k, system: []uint32{systemPID}, placer: p}
}

type windowsKernel struct {
	rights uint32 // to a process, besides those that every question needs
}

// now is precise, since a coarse clock could put the accept before the start of a caller that came quickly.
func now() time.Time {
	var now windows.Filetime
	windows.GetSystemTimePreciseAsFileTime(&now)
	return time.Unix(0, now.Nanoseconds())
}

func clientPID(conn net.Conn) uint32 {
	pid, err := windowsKernel{}.ClientPID(conn)
	if err != nil {
		return 0
	}
	return pid
}

// ClientPID is what the pipe file system noted when the client opened its end.
// https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-getnamedpipeclientprocessid
func (windowsKernel) ClientPID(conn net.Conn) (pid uint32, err error) {
	file, ok := conn.(interface{ Fd() uintptr })
	if !ok {
		return 0, fmt.Errorf("a %T is not a named pipe", conn)
	}
	return pid, windows.GetNamedPipeClientProcessId(windows.Handle(file.Fd()), &pid)
}

// Open asks for no more than is needed to read who the process is and to see it end.
// While the handle is open, Windows does not give the PID to another process.
// https://learn.microsoft.com/windows/win32/procthread/process-security-and-access-rights
func (k windowsKernel) Open(_ net.Conn, pid uint32) (process, error) {
	handle, err := windows.OpenProcess(k.rights|windows.PROCESS_QUERY_LIMITED_INFORMATION|windows.SYNCHRONIZE, false, pid)
	if err != nil {
		return nil, err
	}
	return windowsProcess(handle), nil
}
