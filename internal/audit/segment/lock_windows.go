package segment

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lock takes the file until it is closed. The locked byte lies far behind every record, since a locked one could not be read.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-lockfileex
func lock(file *os.File) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	var locked error
	if err := raw.Control(func(fd uintptr) {
		locked = windows.LockFileEx(windows.Handle(fd), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: 1 << 30})
	}); err != nil {
		return err
	}
	if errors.Is(locked, windows.ERROR_LOCK_VIOLATION) {
		return ErrInUse
	}
	return locked
}
