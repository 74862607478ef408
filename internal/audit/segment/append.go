package segment

import (
	"errors"
	"io"
	"os"
)

// OpenAppend opens a file beside the segments for appending by one writer, so that Reserve works on it.
func OpenAppend(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|appendFlag, 0o600) // #nosec G304 -- in the directory that the operator names
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Reserve keeps disk space for length bytes from offset on, behind the end of the file, without making it longer.
// errors.ErrUnsupported means that the file system cannot.
func Reserve(file *os.File, offset, length int64) error { return allocate(file, offset, length) }
