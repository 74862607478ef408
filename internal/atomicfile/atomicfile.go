// Package atomicfile replaces files in one step: after a crash a file has its old content or the new, whole.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Replace writes the content of a file beside it and renames it, so that a hard link to the old file keeps the old content. The directory need not be readable:
// it is not flushed, so that a crash soon after may bring the old file back.
func Replace(name string, mode fs.FileMode, write func(io.Writer) error) error {
	temp, err := Create(name)
	if err != nil {
		return err
	}
	return rename(temp, name, errors.Join(write(temp), temp.Chmod(mode)))
}

// Create makes a file of mode 0600 for the new content of the named one, in the same directory: .NAME-DIGITS.
func Create(name string) (*os.File, error) {
	return os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
}

// Commit puts temp in the place of the named file, for good, and removes it if that fails or err is the failure of writing it.
func Commit(temp *os.File, name string, err error) error {
	if err := rename(temp, name, err); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(name))
}

func rename(temp *os.File, name string, err error) error {
	if err := Close(temp, err); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), name); err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return nil
}

// Close flushes a new file to the disk, and removes it if that fails or err is the failure of writing it.
func Close(f *os.File, err error) error {
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SyncDir makes the names in a directory durable. Windows has no such call and needs none.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) // #nosec G304 -- the caller names the directory
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
