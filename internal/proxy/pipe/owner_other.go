//go:build !windows && !linux

package pipe

import (
	"context"
	"errors"
)

// serverPID is not known here, so nothing can be served.
func serverPID(context.Context, string, Options) (uint32, error) { return 0, errors.ErrUnsupported }
