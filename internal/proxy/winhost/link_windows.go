package winhost

import (
	"errors"
	"fmt"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
)

// Link makes the link in the directory that is open, which CreateSymbolicLink, taking a path, could not promise.
// If the text cannot be written, what was made to carry it goes away again.
func (d *openDir) Link(name, text string, isDirectory bool) error {
	data, err := encodeSymlink(text)
	if err != nil {
		return err
	}
	options := uint32(windows.FILE_NON_DIRECTORY_FILE)
	if isDirectory {
		options = windows.FILE_DIRECTORY_FILE
	}
	handle, err := openAt(d.handle, name, windows.FILE_WRITE_ATTRIBUTES|windows.DELETE, windows.FILE_CREATE, options)
	if err != nil {
		return err
	}
	err = winio.RunWithPrivilege("SeCreateSymbolicLinkPrivilege", func() error {
		return setReparse(handle, data)
	})
	if err != nil {
		err = errors.Join(fmt.Errorf("write the link %s: %w", name, err), markDeleted(handle))
	}
	return errors.Join(err, windows.CloseHandle(handle))
}

// setReparse turns the file or directory behind a handle into a reparse point.
// https://learn.microsoft.com/windows/win32/api/winioctl/ni-winioctl-fsctl_set_reparse_point
func setReparse(handle windows.Handle, data []byte) error {
	var returned uint32
	// #nosec G115 -- a reparse point has at most 16 KiB
	return windows.DeviceIoControl(handle, windows.FSCTL_SET_REPARSE_POINT, &data[0], uint32(len(data)), nil, 0, &returned, nil)
}

func (d *openDir) Readlink(name string) (string, error) {
	handle, err := openAt(d.handle, name, windows.FILE_READ_ATTRIBUTES, windows.FILE_OPEN, 0)
	if err != nil {
		return "", err
	}
	defer func() { _ = windows.CloseHandle(handle) }() // read only
	data := make([]byte, windows.MAXIMUM_REPARSE_DATA_BUFFER_SIZE)
	var n uint32
	// #nosec G115 -- a constant
	if err := windows.DeviceIoControl(handle, windows.FSCTL_GET_REPARSE_POINT, nil, 0, &data[0], uint32(len(data)), &n, nil); err != nil {
		return "", fmt.Errorf("read the link %s: %w", name, err)
	}
	return decodeReparse(data[:n])
}
