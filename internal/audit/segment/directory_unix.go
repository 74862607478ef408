//go:build unix

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// appendFlag makes every write go to the end of the file, even if another process has moved it.
const appendFlag = os.O_APPEND

// checkOwner refuses a directory of another account.
func checkOwner(info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int64(stat.Uid) != int64(os.Geteuid()) {
		return errors.New("the directory belongs to another account")
	}
	return nil
}

// isAt says whether path still names the file.
func isAt(path string, opened fs.FileInfo) bool {
	info, err := os.Lstat(path)
	return err == nil && os.SameFile(info, opened)
}

// openNow opens a file for reading, and no link. It does not wait for a writer of a pipe (open(2), O_NONBLOCK).
func openNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0) // #nosec G304 -- in the directory that the operator names
}

// allocated is how much of the disk a file takes (stat(2): blocks of 512 bytes, whatever those of the file system are).
func allocated(_ *os.File, info fs.FileInfo) (int64, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, errors.ErrUnsupported
	}
	return stat.Blocks * 512, nil
}

// release sets the length of a file to what it is, which frees the blocks behind its end (ftruncate(2)).
func release(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	return os.Truncate(path, info.Size())
}
