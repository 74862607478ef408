package segment

import (
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// appendFlag is none: a handle that may only append cannot allocate.
const appendFlag = 0

// checkOwner does nothing: making the directory private checks its owner.
func checkOwner(fs.FileInfo) error { return nil }

// isAt is always so: Windows keeps a file that is open here from being moved or removed.
func isAt(string, fs.FileInfo) bool { return true }

// openNow opens a file for reading. No directory of Windows holds named pipes.
func openNow(path string) (*os.File, error) {
	return os.Open(path) // #nosec G304 -- in the directory that the operator names
}

// allocated is how much of the disk a file takes.
// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_standard_info
func allocated(file *os.File, _ fs.FileInfo) (int64, error) {
	var info struct {
		AllocationSize, EndOfFile int64
		NumberOfLinks             uint32
		DeletePending, Directory  byte
	}
	err := control(file, func(fd uintptr) error {
		return windows.GetFileInformationByHandleEx(windows.Handle(fd), windows.FileStandardInfo, (*byte)(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	})
	return info.AllocationSize, err
}

// release does nothing: NTFS gives back what is behind the end when the last handle is closed.
// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_allocation_info
func release(string) error { return nil }
