//go:build unix

package watch

import (
	"errors"
	"io/fs"
	"syscall"
)

// isGone says that there is no server: no socket, or one that was left behind.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}
