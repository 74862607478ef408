package pipe

import (
	"errors"
	"fmt"
)

// ErrTaken means that somebody else already answers on a name. Serving beside them would let
// them answer some of our callers, so a taken name stops the start.
var ErrTaken = errors.New("the name is taken")

// Options say where pipes are and who may open them.
type Options struct {
	// SocketDir is the directory of the unix sockets that stand in for pipes outside Windows.
	// It is made if it is missing and must belong to this user alone. Not used on Windows.
	SocketDir string
	// SDDL is the security descriptor of a pipe; empty means DefaultSDDL. Used on Windows alone.
	SDDL string
}

// longest keeps \\.\pipe\NAME far below the 256 characters that CreateNamedPipe takes,
// and DIR/NAME.sock within the 107 bytes of a socket address for an ordinary DIR.
const longest = 64

// checkName keeps separators, device syntax and upper case out of names. The names that are served are
// made by this program, so a strange one is a mistake here and not a caller's input.
func checkName(name string) error {
	if name == "" || len(name) > longest {
		return fmt.Errorf("pipe name %q: must have 1 to %d characters", name, longest)
	}
	if name[0] == '-' || name[0] == '.' {
		return fmt.Errorf("pipe name %q: must start with a letter or a digit", name)
	}
	for _, c := range []byte(name) {
		isWord := 'a' <= c && c <= 'z' || '0' <= c && c <= '9'
		if !isWord && c != '-' && c != '.' {
			return fmt.Errorf("pipe name %q: %q is not a lower-case letter, a digit, '-' or '.'", name, c)
		}
	}
	return nil
}
