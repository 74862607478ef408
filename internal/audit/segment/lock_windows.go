package segment

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock takes the file until it is closed. The locked byte lies far behind every record, since a locked one could not be read.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex
func lock(file *os.File) error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := control(file, func(fd uintptr) error {
		return windows.LockFileEx(windows.Handle(fd), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrInUse
	}
	return err
}
