package logfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// openPlain opens a file to append to, and no link: a reparse point is opened itself, and refused. Other programs may read the file,
// and rename it, meanwhile.
// https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew
func openPlain(path string) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const shared = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	handle, err := windows.CreateFile(name, windows.FILE_APPEND_DATA|windows.FILE_READ_ATTRIBUTES|windows.SYNCHRONIZE, shared, nil, windows.OPEN_ALWAYS,
		windows.FILE_ATTRIBUTE_NORMAL|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	var info windows.ByHandleFileInformation
	err = windows.GetFileInformationByHandle(handle, &info)
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		err = fmt.Errorf("%s is a link", path)
	case info.NumberOfLinks > 1:
		err = fmt.Errorf("%s has %d names: one of them may be another account's", path, info.NumberOfLinks)
	}
	if err != nil {
		return nil, errors.Join(err, windows.CloseHandle(handle))
	}
	return os.NewFile(uintptr(handle), path), nil
}
