package pipe

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrTaken means that another process already answers on a name. Serving beside it would let
// it answer some of our callers, so a taken name stops the start.
var ErrTaken = errors.New("the name is taken")

// ErrLost means that a name leads to no process although this process serves it.
var ErrLost = errors.New("the name leads to no process")

// Listener is a pipe that is open.
type Listener interface {
	net.Listener
	// Verify finds out whether the pipe's name still leads to this process: ErrTaken if it leads to another, ErrLost if to
	// none. Any other error means that it could not be found out. The question is never handed to Accept's caller; on
	// Windows it is a connection, which Accept must be there to take.
	Verify(ctx context.Context) error
}

// Options are the place of pipes and the accounts that may open them.
type Options struct {
	// SocketDir is the directory of the unix sockets that stand in for pipes outside Windows.
	// It is made if it is missing and must belong to this user alone. Not used on Windows.
	SocketDir string
	// SDDL is the security descriptor of a pipe; empty means DefaultSDDL. Used on Windows alone.
	SDDL string
	// Accounts are the SIDs of those who may open the pipe besides; see Descriptor. Used on Windows alone: a socket is its
	// own user's.
	Accounts []string
}

// longest keeps \\.\pipe\NAME below the 256 characters that CreateNamedPipe takes. DIR/NAME.sock must besides fit into the
// 107 bytes of a socket address; the system says so if it does not.
const longest = 200

// CheckName accepts the names that Listen and Dial take. It keeps separators, device syntax and letters beyond ASCII out of names.
// They are this program's own or come from its configuration, so a strange one is a mistake and not a caller's input. Windows
// ignores a dot at the end.
func CheckName(name string) error {
	if name == "" || len(name) > longest {
		return fmt.Errorf("pipe name %q: must have 1 to %d characters", name, longest)
	}
	if !isWord(name[0]) || name[len(name)-1] == '.' {
		return fmt.Errorf("pipe name %q: must start with a letter or a digit, without \\\\.\\pipe\\, and not end in a dot", name)
	}
	for _, c := range []byte(name) {
		if !isWord(c) && c != '-' && c != '.' && c != '_' {
			return fmt.Errorf("pipe name %q: %q is not a letter, a digit, '-', '.' or '_'", name, c)
		}
	}
	return nil
}

func isWord(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}
