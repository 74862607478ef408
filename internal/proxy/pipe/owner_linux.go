package pipe

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// serverOf is the process that called listen on the socket (unix(7), SO_PEERCRED).
func serverOf(conn net.Conn) (uint32, error) {
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
