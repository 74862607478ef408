// Package atmost reads files and streams that may not be larger than a bound.
package atmost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// SizeError means that there is more to read than the bound, of which nothing is returned.
type SizeError struct {
	// Most is the bound, in bytes.
	Most int64
}

func (e *SizeError) Error() string { return fmt.Sprintf("more than %d bytes", e.Most) }

// ErrNotRegular means that a file is a directory, a named pipe, a device or a socket.
var ErrNotRegular = errors.New("not a regular file")

// ReadAll reads to the end. More than most bytes are a SizeError.
func ReadAll(r io.Reader, most int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, most+1)) // one more shows that there are more
	if err == nil && int64(len(text)) > most {
		err = &SizeError{most}
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}

// ReadFile reads a regular file, to which links may lead, of at most most bytes. Any other file is ErrNotRegular and is not opened: a named pipe might never be
// written to. Its errors are fs.PathErrors.
func ReadFile(name string, most int64) ([]byte, error) { return ReadFS(system{}, name, most) }

// ReadFS is ReadFile for a file of fsys.
func ReadFS(fsys fs.FS, name string, most int64) ([]byte, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	return readAndClose(f, name, most)
}

// ReadAny reads a file of at most most bytes, which need not be a regular one: a shell's <(COMMAND) is a named pipe.
func ReadAny(name string, most int64) ([]byte, error) {
	f, err := system{}.Open(name)
	if err != nil {
		return nil, err
	}
	return readAndClose(f, name, most)
}

// ReadAndClose reads an open file of at most most bytes, which need not be a regular one, and closes it.
func ReadAndClose(f *os.File, most int64) ([]byte, error) { return readAndClose(f, f.Name(), most) }

func readAndClose(f fs.File, name string, most int64) ([]byte, error) {
	text, err := ReadAll(f, most)
	if size, ok := errors.AsType[*SizeError](err); ok {
		err = &fs.PathError{Op: "read", Path: name, Err: size}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return text, nil
}

// system is the file system with the names that package os takes, which are not those of an fs.FS.
type system struct{}

func (system) Open(name string) (fs.File, error)     { return os.Open(name) } // #nosec G304 -- the caller names the file
func (system) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }
