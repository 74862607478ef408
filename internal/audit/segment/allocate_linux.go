package segment

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE of fallocate(2).
const keepSize = 1

func allocate(file *os.File, offset, length int64) error {
	err := control(file, func(fd uintptr) error {
		for {
			err := syscall.Fallocate(int(fd), keepSize, offset, length) // #nosec G115 -- a file descriptor
			if !errors.Is(err, syscall.EINTR) {
				return err
			}
		}
	})
	if errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}
