package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotRegular means that a file of a log is a link, a named pipe, a device or a directory.
var ErrNotRegular = errors.New("not a regular file")

// OpenRegular opens a file of a log for reading. A link leads out of the log, and opening a named pipe waits for a writer: both are refused with
// ErrNotRegular, and opening never waits, even if the file is replaced by a pipe meanwhile.
func OpenRegular(path string) (*os.File, fs.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	file, err := openNow(path)
	if err != nil {
		return nil, nil, err
	}
	info, err = file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// control passes the descriptor or handle of a file to call.
func control(file *os.File, call func(fd uintptr) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = call(fd) }); err != nil {
		return err
	}
	return failed
}
