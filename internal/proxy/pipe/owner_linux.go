package pipe

import (
	"context"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// serverPID is the process that called listen on the socket (unix(7), SO_PEERCRED).
func serverPID(ctx context.Context, name string, o Options) (uint32, error) {
	conn, err := Dial(ctx, name, o)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, fmt.Errorf("a %T is not a unix socket", conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var credentials *unix.Ucred
	var readErr error
	if err := raw.Control(func(fd uintptr) {
		credentials, readErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if readErr != nil {
		return 0, fmt.Errorf("read the server's credentials: %w", readErr)
	}
	return uint32(credentials.Pid), nil // #nosec G115 -- the kernel reports no negative id
}
