package filetrust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Check refuses a file or directory that other accounts can change or replace: it belongs to one of them, its access lets one of them
// write, or one of the directories above lets one of them put another in its place. A directory is checked with everything beneath it.
// What is not there is no error: it is checked once it is there.
func Check(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := checkWay(path, true)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return checkFile(path)
	}
	return checkTree(path)
}

// CheckOwners refuses a file or directory that belongs to another account, or whose way leads through a directory or a link that does.
// Who else may write there is not asked: it is for files that this program only writes, as a log, so that nothing is written where
// another account has it led.
func CheckOwners(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if _, err = checkWay(path, false); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// checkTree checks a directory and what is in it. Links in it are followed by whoever reads it, so what they lead to counts.
func checkTree(dir string) error {
	if err := checkContents(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > maxEntries {
		return fmt.Errorf("%s has %d entries; %d are the bound", dir, len(entries), maxEntries)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch mode := entry.Type(); {
		case mode.IsDir():
			err = checkTree(path)
		case mode.IsRegular():
			err = checkFile(path)
		case mode&fs.ModeSymlink != 0:
			err = checkLink(path)
		default:
			err = fmt.Errorf("%s is neither a file nor a directory", path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxEntries bounds a directory, which is one of Rego modules and holds a handful.
const maxEntries = 10_000

// Fault is why an account that may not decide could change a file.
type Fault struct {
	// Path is the file or directory that can be changed.
	Path string
	// Reason says by whom, and by what.
	Reason string
	// Remedy is what mends it.
	Remedy string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("%s: %s; whoever can change it decides about calls (%s)", f.Path, f.Reason, f.Remedy)
}
