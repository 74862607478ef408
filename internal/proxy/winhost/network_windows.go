package winhost

import (
	"errors"

	"golang.org/x/sys/windows"
)

// redirector is the host's client of shares.
type redirector struct{}

// Answers is https://learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-getfileattributesw of a directory.
// It may take as long as the network makes it.
func (redirector) Answers(path string) (bool, error) {
	name, err := windows.UTF16PtrFromString(path + `\`)
	if err != nil {
		return false, failed("GetFileAttributesW", path, err)
	}
	_, err = windows.GetFileAttributes(name)
	for _, absent := range []windows.Errno{windows.ERROR_FILE_NOT_FOUND, windows.ERROR_PATH_NOT_FOUND, windows.ERROR_INVALID_NAME} {
		if errors.Is(err, absent) {
			return false, nil
		}
	}
	if err != nil {
		return false, failed("GetFileAttributesW", path, err)
	}
	return true, nil
}
