package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// Address returns the name under which clients open the pipe.
func Address(name string, _ Options) string { return `\\.\pipe\` + name }

// Listen makes the pipe and returns its listener. The pipe is a byte stream, is closed to remote clients, and
// its first instance must be ours: a name that exists already is ErrTaken. Once it accepts, the listener opens
// the pipe itself and ends with ErrTaken if another process answers (verifyOwner).
func Listen(name string, o Options) (Listener, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	var err error
	if o.SDDL, err = Descriptor(o.SDDL, o.Accounts); err != nil {
		return nil, fmt.Errorf("pipe %s: %w", name, err)
	}
	listener, err := winio.ListenPipe(Address(name, o), &winio.PipeConfig{SecurityDescriptor: o.SDDL})
	if err != nil {
		return nil, explain(name, o, err)
	}
	verify := func(ctx context.Context) error { return verifyOwner(ctx, name, o, dropWithin) }
	return guard(noting{listener}, verify, isSelf), nil
}

// isSelf says whether this process is the client of a connection to a pipe.
func isSelf(conn net.Conn) bool {
	_, at := peer.Arrived(conn)
	return at.PID == windows.GetCurrentProcessId()
}

// Dial opens the pipe as its clients do: at the anonymous impersonation level, so that an unexpected server
// learns and gains nothing.
func Dial(ctx context.Context, name string, o Options) (net.Conn, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return winio.DialPipeContext(ctx, Address(name, o))
}

// explain adds what an operator can do about it.
func explain(name string, o Options, err error) error {
	address := Address(name, o)
	switch {
	case errors.Is(err, windows.ERROR_INVALID_OWNER), errors.Is(err, windows.ERROR_PRIVILEGE_NOT_HELD):
		return fmt.Errorf("listen on %s: this account may not give the pipe to the owner in %q: run as SYSTEM or change the descriptor: %w", address, o.SDDL, err)
	case errors.Is(err, windows.ERROR_ACCESS_DENIED), errors.Is(err, windows.ERROR_PIPE_BUSY), errors.Is(err, windows.ERROR_ALREADY_EXISTS):
	default:
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	// These are the answers to a name that exists. The process that serves it is worth a name in the message.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	pid, askErr := serverPID(ctx, name, o)
	if askErr != nil {
		return fmt.Errorf("listen on %s: %w, and its owner does not answer: %w", address, ErrTaken, err)
	}
	return fmt.Errorf("listen on %s: %w by process %d: %w", address, ErrTaken, pid, err)
}
