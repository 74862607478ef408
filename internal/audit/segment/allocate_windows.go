package segment

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// allocate sets the allocation size of the file, which is never below its length here.
// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_allocation_info
func allocate(file *os.File, offset, length int64) error {
	size := offset + length
	err := control(file, func(fd uintptr) error {
		return windows.SetFileInformationByHandle(windows.Handle(fd), windows.FileAllocationInfo, (*byte)(unsafe.Pointer(&size)), uint32(unsafe.Sizeof(size)))
	})
	for _, e := range []error{windows.ERROR_NOT_SUPPORTED, windows.ERROR_INVALID_FUNCTION, windows.ERROR_CALL_NOT_IMPLEMENTED, windows.ERROR_INVALID_PARAMETER} {
		if errors.Is(err, e) {
			return errors.ErrUnsupported
		}
	}
	return err
}
