package winhost

import (
	"errors"
	"unsafe"

	"golang.org/x/sys/windows"
)

// markDeleted deletes what a handle was opened on: at once, even if others have it open and if it is read-only.
// File systems other than NTFS (FAT, ReFS of old) and systems before Windows 10 do not know that
// class of information; there it goes when the last handle is closed.
// https://learn.microsoft.com/windows-hardware/drivers/ddi/ntddk/ns-ntddk-_file_disposition_information_ex
func markDeleted(handle windows.Handle) error {
	flags := uint32(windows.FILE_DISPOSITION_DELETE | windows.FILE_DISPOSITION_POSIX_SEMANTICS | windows.FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE)
	var status windows.IO_STATUS_BLOCK
	err := windows.NtSetInformationFile(handle, &status, (*byte)(unsafe.Pointer(&flags)), uint32(unsafe.Sizeof(flags)), windows.FileDispositionInformationEx)
	if err == nil {
		return nil
	}
	for _, unknown := range []windows.NTStatus{
		windows.STATUS_INVALID_INFO_CLASS, windows.STATUS_INVALID_PARAMETER,
		windows.STATUS_NOT_SUPPORTED, windows.STATUS_NOT_IMPLEMENTED,
	} {
		if errors.Is(err, unknown) {
			return markDeletedOnClose(handle)
		}
	}
	return errno(err)
}

// markDeletedOnClose is the older way, which refuses what is read-only.
// https://learn.microsoft.com/windows/win32/api/winbase/ns-winbase-file_disposition_info
func markDeletedOnClose(handle windows.Handle) error {
	var info struct {
		created, accessed, written, changed int64 // 0 leaves them as they are
		attributes                          uint32
		_                                   uint32
	}
	size := uint32(unsafe.Sizeof(info))
	if err := windows.GetFileInformationByHandleEx(handle, windows.FileBasicInfo, (*byte)(unsafe.Pointer(&info)), size); err == nil && info.attributes&windows.FILE_ATTRIBUTE_READONLY != 0 {
		info.attributes &^= windows.FILE_ATTRIBUTE_READONLY
		if info.attributes == 0 {
			info.attributes = windows.FILE_ATTRIBUTE_NORMAL // 0 would leave them as they are
		}
		if err := windows.SetFileInformationByHandle(handle, windows.FileBasicInfo, (*byte)(unsafe.Pointer(&info)), size); err != nil {
			return err
		}
	}
	remove := byte(1)
	var status windows.IO_STATUS_BLOCK
	if err := windows.NtSetInformationFile(handle, &status, &remove, 1, windows.FileDispositionInformation); err != nil {
		return errno(err)
	}
	return nil
}
