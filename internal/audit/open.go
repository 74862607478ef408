package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// ErrInUse means that another writer has the file.
var ErrInUse = errors.New("another process writes to it")

// errMoved means that the open file is no longer the one at its path.
var errMoved = errors.New("it was moved away or removed")

// openAppend opens path for appending and reading, as its only writer. Only a regular file will do, and no link:
// whoever planted one would decide where records go.
func openAppend(path string) (handle, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkOpened(path, file), SyncDir(dir)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// checkOpened takes the file for this writer and looks at what was opened, whatever was there a moment before.
func checkOpened(path string, file *os.File) error {
	if err := Lock(file); err != nil {
		return err
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || !isAt(path, info) {
		return errors.New("not a regular file")
	}
	return checkWriters(info)
}

// isAt says whether path still names the file. Windows keeps a file that is open here from being moved or removed.
func isAt(path string, opened fs.FileInfo) bool {
	if runtime.GOOS == "windows" {
		return true
	}
	info, err := os.Lstat(path)
	return err == nil && os.SameFile(info, opened)
}

// checkWriters refuses a file that others could write records to.
func checkWriters(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o022 != 0 {
		return fmt.Errorf("its mode %#o lets others write to it", mode)
	}
	return nil
}

// SyncDir makes the names in a directory durable. Windows has no such call and needs none.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir) // #nosec G304 -- the directory of the operator's file
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
