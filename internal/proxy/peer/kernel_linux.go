package peer

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

func newResolver(p *placer) Resolver {
	return resolver{kernel: linuxKernel{}, placer: p}
}

type linuxKernel struct{}

func now() time.Time { return time.Now() }

func clientPID(conn net.Conn) uint32 {
	pid, err := linuxKernel{}.ClientPID(conn)
	if err != nil {
		return 0
	}
	return pid
}

func (linuxKernel) ClientPID(conn net.Conn) (uint32, error) {
	credentials, err := credentialsOf(conn)
	if err != nil {
		return 0, err
	}
	return uint32(credentials.Pid), nil // #nosec G115 -- the kernel reports no negative id, and 0 is refused
}

// ServerPID is the process that called listen on the socket of a connection (unix(7), SO_PEERCRED).
func ServerPID(conn net.Conn) (uint32, error) { return linuxKernel{}.ClientPID(conn) }

// Open takes the pidfd that the kernel kept since the connect (Linux 6.5), which cannot be of another process,
// or else opens one by number, which is what the rest of the order is for.
func (linuxKernel) Open(conn net.Conn, pid uint32) (process, error) {
	credentials, err := credentialsOf(conn)
	if err != nil {
		return nil, err
	}
	var fd int
	err = control(conn, func(socket int) (err error) {
		fd, err = unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		return err
	})
	if errors.Is(err, unix.ENOPROTOOPT) {
		fd, err = unix.PidfdOpen(int(pid), 0)
	}
	if err != nil {
		return nil, err
	}
	unix.CloseOnExec(fd)
	return &linuxProcess{fd: fd, pid: pid, uid: credentials.Uid}, nil
}

// credentialsOf are those of the process at the moment of its connect (unix(7), SO_PEERCRED).
func credentialsOf(conn net.Conn) (credentials *unix.Ucred, err error) {
	err = control(conn, func(socket int) (err error) {
		credentials, err = unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	return credentials, err
}

func control(conn net.Conn, ask func(socket int) error) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("a %T is not a unix socket", conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var answer error
	if err := raw.Control(func(fd uintptr) { answer = ask(int(fd)) }); err != nil {
		return err
	}
	return answer
}
