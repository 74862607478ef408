package segment

import (
	"errors"
	"os"
	"syscall"
)

// keepSize is FALLOC_FL_KEEP_SIZE of fallocate(2).
const keepSize = 1

func allocate(file *os.File, offset, length int64) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			failed = syscall.Fallocate(int(fd), keepSize, offset, length) // #nosec G115 -- a file descriptor
			if !errors.Is(failed, syscall.EINTR) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if errors.Is(failed, syscall.EOPNOTSUPP) || errors.Is(failed, syscall.ENOSYS) {
		return errors.ErrUnsupported
	}
	return failed
}
