//go:build !windows

package winsvc

import "os"

// MakePrivate makes a directory that only its owner can open, or leaves it so.
func MakePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700) // #nosec G302 -- a directory
}

// MakePrograms makes a directory for programs that only its owner can change.
func MakePrograms(dir string) error { return os.MkdirAll(dir, 0o755) } // #nosec G301 -- programs are no secret

// CreatePrivate makes a file that must not exist, and that only its owner can open.
func CreatePrivate(file string) (*os.File, error) {
	return os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the caller names it
}

// MakeFilePrivate is for files whose access comes from the directory above: here it comes from their mode, which readers check.
func MakeFilePrivate(string) error { return nil }
