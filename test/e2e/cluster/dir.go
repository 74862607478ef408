//go:build e2e

package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const dirPrefix = "pipeguard-e2e-"

// newDir makes the directory of a run and locks it until the process ends. First it removes what runs have left that were
// killed before they could: directories that nobody has locked, and their control groups. Processes they cannot leave.
func newDir() (string, error) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range left {
		if err := lock(dir); errors.Is(err, syscall.EWOULDBLOCK) {
			continue // it runs
		} else if err != nil {
			return "", err
		}
		if err := errors.Join(removeGroups(groupName(dir)), os.RemoveAll(dir)); err != nil {
			return "", fmt.Errorf("clear up after an earlier run: %w", err)
		}
	}
	dir, err := os.MkdirTemp("", dirPrefix)
	if err != nil {
		return "", err
	}
	return dir, lock(dir)
}

// lock takes a lock that the kernel gives back when this process ends.
func lock(dir string) error {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	if err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = syscall.Close(fd)
		return fmt.Errorf("lock %s: %w", dir, err)
	}
	return nil
}
