//go:build !windows && !linux

package pipe

import (
	"errors"
	"net"
)

// serverOf is not known here, so nothing can be served.
func serverOf(net.Conn) (uint32, error) { return 0, errors.ErrUnsupported }
