//go:build unix

package segment

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file until it is closed (flock(2)).
func lock(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	if err := raw.Control(func(fd uintptr) { locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) }); err != nil {
		return err
	}
	if errors.Is(locked, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return locked
}
