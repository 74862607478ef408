//go:build unix

package segment

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// appendFlag makes every write go to the end, whoever moved it.
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

// syncDir makes names durable.
func syncDir(path string) error {
	d, err := os.Open(path) // #nosec G304 -- the directory of the log
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
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
