//go:build unix

package segment

import (
	"errors"
	"os"
	"syscall"
)

// lock takes the file until it is closed (flock(2)).
func lock(file *os.File) error {
	err := control(file, func(fd uintptr) error { return syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}
