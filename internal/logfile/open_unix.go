//go:build !windows

package logfile

import (
	"os"
	"syscall"
)

// openPlain opens a file to append to, and no link. It does not wait for somebody to read a pipe.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600) // #nosec G304 -- the operator names the file
}
